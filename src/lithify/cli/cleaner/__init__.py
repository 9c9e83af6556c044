"""Cleaners: running one, how they stand, rates, quarantine."""
