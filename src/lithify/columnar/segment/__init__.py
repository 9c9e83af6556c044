"""Segments: Lithify's Parquet files, written, read and checked."""
