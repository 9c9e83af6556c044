"""Where a gateway listens: whether it may, with which certificate, and for how long it waits for a connection."""
