"""How values and foreign text are worded for a reader, on the screen and on the command line.

Knows no terminal library: what it returns is plain text.
"""
