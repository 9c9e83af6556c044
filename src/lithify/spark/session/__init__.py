"""The Spark session: found or started, watched, restarted."""
