"""Copies of topics of other systems: where they continue, and what they take."""
