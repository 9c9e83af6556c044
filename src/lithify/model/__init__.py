"""What a log is: frozen values and nothing else. Standard library only."""
