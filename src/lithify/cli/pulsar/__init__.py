"""Verbs for topics of Pulsar clusters."""
