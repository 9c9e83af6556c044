"""Which part of a log a round may touch, expires, or has to touch: horizon, retention, rounds required."""
