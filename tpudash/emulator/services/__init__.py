"""Google's APIs, one file each: they read requests, ask the world and word the answers."""
