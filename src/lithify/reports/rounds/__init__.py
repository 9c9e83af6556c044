"""Of rounds: what one did, what one would do, and the rates that bound them."""
