"""Verbs for gateways."""
