"""Topics of other systems: as these describe them, and what a copy stores of its source."""
