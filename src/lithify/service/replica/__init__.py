"""Exact copies of topics in other warehouses."""
