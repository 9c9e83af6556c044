"""Footers and pages of Parquet files, looked at before Arrow decodes them (C51)."""
