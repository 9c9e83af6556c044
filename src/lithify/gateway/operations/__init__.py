"""What can be requested of a gateway: one table, of which the server and its OpenAPI description are made."""
