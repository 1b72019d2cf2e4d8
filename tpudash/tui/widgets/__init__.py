"""The panes and the lines around them."""
