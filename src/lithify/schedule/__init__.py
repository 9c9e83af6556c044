"""When a log is due, in which order topics are worked on, and what is said of it."""
