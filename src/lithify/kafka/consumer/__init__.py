"""A consumer that reads the compacted part from the lake and goes on in Kafka."""
