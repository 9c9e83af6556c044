"""Files wherever the warehouse is: opened, held, made durable, sealed."""
