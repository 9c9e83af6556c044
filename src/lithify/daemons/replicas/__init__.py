"""Replicas of topics in other warehouses: defined, kept up to date by daemons, and inspected."""
