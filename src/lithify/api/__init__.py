"""The Python API: lakes, topics, and limits as numbers or text."""
