"""Doing it: append, read, compact, commit. Knows ports, not what stands behind them."""
