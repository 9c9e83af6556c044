"""Replicas of topics in other warehouses: defined, kept up by daemons, and looked at."""
