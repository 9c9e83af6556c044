"""The HTTP server of a gateway, made of the table of operations."""
