"""A live cluster as the ports of rounds want it (`ports/pulsar`)."""
