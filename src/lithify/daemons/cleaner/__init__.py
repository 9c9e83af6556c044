"""The cleaner: automatic compaction, for all topics of a catalog (C28, C29, C31)."""
