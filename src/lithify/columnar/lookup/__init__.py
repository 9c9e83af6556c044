"""Finding the latest record of one key of a log."""
