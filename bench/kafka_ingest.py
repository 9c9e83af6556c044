"""How fast a Kafka topic is copied into the lake: from a broker on the same machine, 200-byte values.

    PYTHONPATH=src:tests python bench/kafka_ingest.py [--records 2000000] [--partitions 2] [--repeat 3]

Starts its own broker and writes the topic, then copies it several times, each into a new topic, on one
warm Spark session. It prints the records per second of each copy.
"""

from __future__ import annotations

import argparse
import os
import tempfile

import lithify
from kafka_topics import send
from shown import add_publish, shown
from support.kafka.broker import KafkaBroker, a_broker  # type: ignore[import-not-found]
from support.kafka.ingest import kafka_session  # type: ignore[import-not-found]

VALUE_BYTES = 200
KEYS = 1_000_000
STRIDE = 7_919


def feed(broker: KafkaBroker, topic: str, records: int, partitions: int) -> None:
    producer = broker.producer(compression_type="lz4", linger_ms=50, queue_buffering_max_messages=1_000_000)
    noise = os.urandom(2 * VALUE_BYTES)
    for n in range(records):
        first = n % VALUE_BYTES
        key = b"key-%08d" % (n * STRIDE % KEYS)
        send(producer, topic, key, noise[first : first + VALUE_BYTES], 1_700_000_000_000 + n, n % partitions)
        if n % 1_000 == 0:
            producer.poll(0)
    producer.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    add_publish(parser)
    flags = parser.parse_args()
    with shown(flags) as show, a_broker(jvm=()) as broker, tempfile.TemporaryDirectory() as folder:
        topic = broker.make_topic(flags.partitions, retention_ms="-1")  # the timestamps are old
        feed(broker, topic, flags.records, flags.partitions)
        session = kafka_session()
        session.range(1).count()
        lake = lithify.open(folder)
        for number in range(flags.repeat):
            servers = {"bootstrap.servers": broker.address}
            (report,) = lake.ingest(servers, [topic], into=f"copy{number}", spark=session)
            assert (report.error, report.records) == (None, flags.records)
            show(copy=number + 1, records=flags.records, records_per_s=report.records_per_s)


if __name__ == "__main__":
    main()
