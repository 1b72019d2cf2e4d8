"""The screen: renders snapshots of the store and asks the operations room; does no I/O."""
