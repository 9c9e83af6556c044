"""A topic of the lake put into a Kafka topic (C1)."""
