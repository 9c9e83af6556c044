"""The status of topics, from metadata alone."""
