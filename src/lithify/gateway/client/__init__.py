"""A lake behind a gateway."""
