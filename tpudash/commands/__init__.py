"""One file for each command of the command line; each imports only what it needs."""
