"""What trainers print, made readable: cleaned, described, judged and folded. Pure functions."""
