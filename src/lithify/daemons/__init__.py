"""What runs until it is stopped: cleaners, and daemons of replicas."""
