"""What verbs on gateways print."""
