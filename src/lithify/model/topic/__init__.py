"""A topic at one version, the logs in it, and what one commit changes."""
