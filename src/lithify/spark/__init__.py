"""How bytes are rewritten: the only importer of PySpark. Never commits."""
