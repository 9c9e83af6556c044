"""How a client shows who it is, and what it trusts: TLS, and tokens of issuers."""
