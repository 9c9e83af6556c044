"""`verify` on Spark."""
