"""What gateways of a lake share: who may ask them, and the jobs that they run."""
