"""The cleaner: compaction that nobody has to start, for all topics of a catalog (C28, C29, C31)."""
