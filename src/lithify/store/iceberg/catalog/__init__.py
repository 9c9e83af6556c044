"""Catalogs and the tables in them."""
