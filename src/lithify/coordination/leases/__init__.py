"""What processes share in a database: leases of cleaners and of members of groups, and positions of groups."""
