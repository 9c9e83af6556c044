"""The key pass as a Spark job: a task for each hash range, or a shuffle of keys."""
