"""Checks footers and pages of Parquet files before Arrow decodes them (C51)."""
