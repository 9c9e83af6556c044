"""Tables of the database that processes share."""
