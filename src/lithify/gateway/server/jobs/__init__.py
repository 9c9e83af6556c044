"""Long work of a gateway as jobs, and how HTTP shows them."""
