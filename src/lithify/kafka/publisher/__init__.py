"""Publishes a topic of the lake into a Kafka topic (C1)."""
