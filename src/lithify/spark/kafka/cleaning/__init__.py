"""Rounds over the log directories of brokers that do not run."""
