"""Where leases are: a database that cleaners share, or the memory of the only one."""
