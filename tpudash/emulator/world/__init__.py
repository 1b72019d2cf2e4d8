"""The emulated cloud itself: state and its rules, free of any transport."""
