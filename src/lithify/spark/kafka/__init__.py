"""Reading topics of a Kafka cluster on Spark."""
