"""The ports of rounds of live Pulsar topics."""
