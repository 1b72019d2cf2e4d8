"""The classifier of error texts and the troubleshooting checklist."""
