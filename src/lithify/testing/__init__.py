"""A lake in memory, with rounds in plain Python; it also specifies what the Iceberg store and Spark must do."""
