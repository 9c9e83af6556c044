"""Footers and pages of Parquet files, checked before Arrow decodes them (C51)."""
