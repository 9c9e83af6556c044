"""What a reader reads of a log, where it continues, and when it must not (C7, C33, C49)."""
