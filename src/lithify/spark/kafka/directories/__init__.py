"""Log directories as a source: files that tasks read, without a broker."""
