"""What an open page gets: its files, and what happens as it happens."""
