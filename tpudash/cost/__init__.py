"""Prices and estimates. Money here is always an estimate and says so."""
