"""What Kafka's client says of a log that was cut."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from lithify.kafka_client.epochs import Cut, cut_of

CUT = (
    "Partition log truncation detected at offset 10 (leader epoch 2): broker end offset is 5 (offset leader epoch 0). "
    "Reset to INVALID.: Local: Partition log truncation detected (broker 1)"
)
UNKNOWN = (
    "No epoch found less or equal to offset 10 (leader epoch 100): broker end offset is -1 (offset leader epoch -1). "
    "Reset using configured policy.: Local: Partition log truncation detected (broker 1)"
)
GONE = "fetch failed due to requested offset not available on the broker: Broker: Offset out of range (broker 1)"


@pytest.mark.parametrize(
    ("code", "text", "found"),
    [
        (KafkaError._AUTO_OFFSET_RESET, CUT, Cut(5)),
        (KafkaError._LOG_TRUNCATION, CUT, Cut(5)),
        (KafkaError._AUTO_OFFSET_RESET, UNKNOWN, Cut(None)),
        (KafkaError._AUTO_OFFSET_RESET, GONE, None),
        (KafkaError._PARTITION_EOF, "", None),
    ],
)
def test_a_cut_is_told_by_the_text_of_a_failure(code: int, text: str, found: Cut | None) -> None:
    """C72"""
    assert cut_of(KafkaError(code, text)) == found
