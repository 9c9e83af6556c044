"""Which part of a log a round may read and change, and why it must: horizon, retention, rounds required."""
