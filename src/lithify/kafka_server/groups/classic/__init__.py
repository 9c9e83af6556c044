"""Groups of Kafka's classic protocol, in which a member assigns the partitions: JoinGroup, SyncGroup, Heartbeat."""
