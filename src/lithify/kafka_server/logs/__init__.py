"""What a topic of the lake is to a client of Kafka: its name and id, its leader epochs, and its records as batches."""
