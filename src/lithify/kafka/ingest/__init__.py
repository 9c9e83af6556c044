"""Topics of a Kafka cluster copied into the lake (C1, C6)."""
