"""Appended records: converted, checked, partitioned, staged."""
