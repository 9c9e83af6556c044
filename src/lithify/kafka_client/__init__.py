"""Clients of a Kafka cluster: their settings, Kafka's client for Python, and a first look at a cluster."""
