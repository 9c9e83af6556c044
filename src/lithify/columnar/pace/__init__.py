"""Rate limits of tasks, in bytes per second (C40)."""
