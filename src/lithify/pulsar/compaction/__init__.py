"""Which messages a compaction of a Pulsar topic keeps, in plain Python."""
