"""What the services need from the world: small protocols, several implementations of each."""
