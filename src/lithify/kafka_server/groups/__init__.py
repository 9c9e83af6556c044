"""Consumer groups of Kafka's clients: which gateway coordinates one, its members, and its committed offsets."""
