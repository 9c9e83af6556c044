"""Topics of other systems: as these describe them, and what a copy knows of its source."""
