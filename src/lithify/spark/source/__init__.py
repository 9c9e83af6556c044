"""The Spark data source `lithify`, for `spark.read`, `readStream`, `write` and `writeStream`.

topics      the port to the warehouse: nothing in this package commits
options     options with the names of Spark's Kafka source, checked
columns     the schema of Spark's Kafka source, and conversion of segments to it
reading     batch and streaming readers: plan on the driver, read Arrow batches in tasks
filters     pushed filters on offset, partition and timestamp as bounds
writing     batch and streaming writers: tasks write segments, the driver commits once
source      `DataSource`, which combines them
"""
