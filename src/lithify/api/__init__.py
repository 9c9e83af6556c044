"""The Python API: lakes, topics, and bounds as people give them."""
