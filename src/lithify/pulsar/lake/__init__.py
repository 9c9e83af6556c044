"""Messages of Pulsar as records of the lake, and how a copy of a topic continues."""
