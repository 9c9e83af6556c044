"""Segments as entries of manifests, written and read."""
