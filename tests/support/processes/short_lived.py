"""Options of a JVM that lives for seconds or minutes."""

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Compiled once and quickly; collected without threads of its own. Results are the same."""
