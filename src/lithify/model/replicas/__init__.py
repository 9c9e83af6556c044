"""Replicas: exact copies of topics in other warehouses; what they are copies of, and what copies were requested."""
