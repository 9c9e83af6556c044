"""`lithify kafka …`: ingest and publish, and the settings of Kafka clients."""
