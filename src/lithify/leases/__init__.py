"""Leases of cleaners: in a database that they share, or in the memory of a single one."""
