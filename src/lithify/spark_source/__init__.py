"""Topics in Spark: `spark.read.format("lithify")`, `readStream`, `write` and `writeStream`.

    from lithify import spark_source

    spark_source.register(spark, warehouse="./lithify-warehouse")
    orders = spark.readStream.format("lithify").option("subscribe", "orders").load()

Importing this module imports PySpark.
"""

from lithify.spark_source.data_source import register

__all__ = ["register"]
