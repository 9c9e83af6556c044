"""The layouts of Kafka's protocol are what the specifications in the broker's own jars say."""

from __future__ import annotations

import kafka_layouts
from support.kafka.broker import MODULES, VERSION
from support.kafka.jars import fetched


def test_the_layouts_are_made_of_the_jar():
    jar = fetched(f"kafka-{VERSION}", MODULES) / f"kafka-clients-{VERSION}.jar"
    assert kafka_layouts.written(jar) == kafka_layouts.LAYOUTS.read_text("utf-8")
    metadata = kafka_layouts.metadata_jar(jar)
    assert kafka_layouts.metadata_written(metadata) == kafka_layouts.METADATA.read_text("utf-8")
