"""What gateways share in the database of leases: keys of appends, standing jobs, tokens."""
