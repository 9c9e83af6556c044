"""Fills tables in files from the lake and Kafka, and keeps them up to date (C1, C6, C9)."""
