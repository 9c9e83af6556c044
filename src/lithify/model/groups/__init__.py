"""Consumer groups: positions, names of leases, and how members share partitions."""
