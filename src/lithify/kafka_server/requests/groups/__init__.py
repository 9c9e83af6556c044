"""What is answered to requests of consumer groups: who joins one, what it has read, and what groups there are."""
