"""Topics of the lake for Kafka's clients, over Kafka's own protocol. It only reads.

client ──► connections/   frames, their bounds, how long one is waited for
                │
           requests/      one module per subject: dicts of `kafka_protocol` in and out
                │
           groups/  logs/ who reads what in a group; what a log of the lake is to a client
"""
