"""What should happen, as pure functions on immutable values."""
