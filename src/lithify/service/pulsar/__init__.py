"""Rounds of live Pulsar topics."""
