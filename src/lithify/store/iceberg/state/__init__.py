"""The state of a topic in the properties of its table."""
