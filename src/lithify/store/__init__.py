"""Where topics live: Apache Iceberg tables in a catalog."""
