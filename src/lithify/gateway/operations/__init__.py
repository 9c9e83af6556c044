"""What can be asked of a gateway: one table, of which the server, its OpenAPI description and the client are made."""
