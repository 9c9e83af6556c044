"""Reads topics of a Kafka cluster with Spark's Kafka source."""
