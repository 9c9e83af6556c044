"""Reports of what was done to live Pulsar topics."""
