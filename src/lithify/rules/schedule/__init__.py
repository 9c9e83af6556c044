"""When a log is due, in which order cleaners work on topics, and how its state is reported."""
