"""Requests and responses of Kafka's protocol as bytes and back, by a table made from Kafka's own specifications.

    layouts.json ─► table.py ─► reading.py, writing.py    one function per API and version, compiled when first used
    metadata.json                       │
    bytes of a frame  ◄── codec.py ──►  dicts with Kafka's names in snake case
    metadata record   ─── metadata.py ─►

It knows neither sockets nor the lake. Ids of topics are 16 bytes.
"""
