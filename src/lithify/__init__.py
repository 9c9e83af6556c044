"""Lithify: log compaction for keyed topics, on Spark."""
