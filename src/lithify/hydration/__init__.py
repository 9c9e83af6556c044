"""Tables in files that have the latest record of every live key of a topic (C6, C9)."""
