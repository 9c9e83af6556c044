"""Records on their way in: checked, partitioned, staged."""
