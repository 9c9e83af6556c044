"""The Spark session: finding or starting it, progress of its jobs, reset after a crash."""
