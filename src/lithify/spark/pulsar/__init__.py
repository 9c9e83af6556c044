"""Pulsar's topics on Spark."""
