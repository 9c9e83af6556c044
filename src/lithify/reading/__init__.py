"""Where a reader of a log goes on, and when it must not (C7, C49)."""
