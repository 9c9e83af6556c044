"""Clients of a Kafka cluster: their settings, Kafka's client for Python, and a first check of a cluster."""
