"""One check of the troubleshooting checklist for each file here; adding a file adds its check."""
