"""What `verify` holds against what: versions against each other, and each against itself."""
