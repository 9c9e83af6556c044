"""Runs rounds, proofs, copies and the data source on Spark: the only importer of PySpark. Never commits."""
