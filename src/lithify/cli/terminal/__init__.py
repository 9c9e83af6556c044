"""The terminal: output, progress, confirmation, signals."""
