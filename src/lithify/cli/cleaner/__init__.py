"""Verbs for cleaners: run, status, throttle, quarantine."""
