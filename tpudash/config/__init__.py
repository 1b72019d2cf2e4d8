"""Settings with their provenance, the keymap, themes and paths."""
