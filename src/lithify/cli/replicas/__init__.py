"""Verbs on replicas."""
