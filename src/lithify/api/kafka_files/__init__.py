"""The files of Kafka brokers that do not run."""
