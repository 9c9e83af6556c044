"""The key pass as a Spark job: one task per hash range, or a shuffle of keys."""
