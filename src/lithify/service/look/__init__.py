"""How topics stand, from metadata alone."""
