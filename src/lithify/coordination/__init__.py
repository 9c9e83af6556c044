"""What machines share beside the catalog: leases, groups and definitions of replicas."""
