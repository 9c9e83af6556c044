"""Groups of Kafka's newer protocol (KIP-848), which the coordinator assigns itself: ConsumerGroupHeartbeat."""
