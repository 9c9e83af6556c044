"""What clients send to log in, and what proves that they may."""
