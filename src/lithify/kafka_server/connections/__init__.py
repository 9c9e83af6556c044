"""Connections of Kafka's clients: frames in, answers out in their order, and nothing that is waited for without end."""
