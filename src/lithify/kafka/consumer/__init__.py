"""A consumer that reads the compacted part from the lake and continues in Kafka."""
