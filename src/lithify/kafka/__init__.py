"""Topics of a Kafka cluster, in and out."""
