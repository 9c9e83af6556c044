"""Where topics live: Apache Iceberg tables, and a memory store that specifies the port."""
