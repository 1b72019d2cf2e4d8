"""The main screen and everything that opens over it."""
