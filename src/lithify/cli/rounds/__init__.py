"""`compact` and what shows, proves or takes back a round."""
