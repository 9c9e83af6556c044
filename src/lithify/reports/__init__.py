"""What verbs print: frozen values whose field names are the JSON keys."""
