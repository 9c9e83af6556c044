"""A program that copies one topic into another as a stream, until it is killed: WAREHOUSE CHECKPOINT."""

from __future__ import annotations

import sys

from lithify import spark_source
from lithify.spark.session.start import session_factory


def main() -> None:
    warehouse, checkpoint = sys.argv[1:]
    session = session_factory(None, {"spark.master": "local[1]"})()
    spark_source.register(session, warehouse)
    options = {"subscribe": "source", "startingOffsets": "earliest", "includeHeaders": "true"}
    frame = session.readStream.format("lithify").options(**options, maxOffsetsPerTrigger="20").load()
    writer = frame.writeStream.format("lithify").option("topic", "target").option("checkpointLocation", checkpoint)
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
