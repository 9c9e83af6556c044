"""`lithify doctor`: its checks by subject."""
