"""Acts that change the cloud: plan, confirm, apply, follow, with a journal."""
