"""The Spark data source `lithify`: what `spark.read`, `readStream`, `write` and `writeStream` call.

topics      what it needs of the warehouse: a port, so that nothing here commits
options     Kafka's option names, checked, as values
columns     the schema of Spark's Kafka source, and segments in it
reading     batch and streaming readers: plan on the driver, read Arrow batches in tasks
filters     `where` on offset, partition and timestamp as bounds
writing     batch and streaming writers: tasks write segments, the driver commits once
source      `DataSource`, which puts them together
"""
