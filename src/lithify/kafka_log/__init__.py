"""Kafka's own bytes: record batches, and the files of a broker's log directory. Nothing here speaks to a broker."""
