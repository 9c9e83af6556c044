"""The Spark session: found or started, watched, started anew."""
