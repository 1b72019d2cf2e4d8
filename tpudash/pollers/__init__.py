"""One task for each source of facts; a fault stays inside its source."""
