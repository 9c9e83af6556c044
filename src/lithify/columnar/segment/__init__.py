"""Segments: Parquet files of ours, written, read and checked."""
