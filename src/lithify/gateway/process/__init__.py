"""One process of a gateway: a cleaner, the server beside it, and standing jobs."""
