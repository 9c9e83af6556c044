"""A round over the segment files of one log, by the rules of Kafka's own cleaner (KAFKA-631)."""
