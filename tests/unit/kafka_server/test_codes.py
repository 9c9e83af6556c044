"""Error codes have the numbers that clients know under their names."""

from enum import IntEnum

import pytest
from confluent_kafka import KafkaError

from lithify.kafka_protocol.codes import Code

OTHER_NAMES = {"NONE": "NO_ERROR", "UNKNOWN_TOPIC_OR_PARTITION": "UNKNOWN_TOPIC_OR_PART"}
UNNAMED = {"UNSUPPORTED_ENDPOINT_TYPE", "INVALID_REGULAR_EXPRESSION", "KAFKA_STORAGE_ERROR"}
"""What this client has no names for."""


@pytest.mark.parametrize("code", [*Code], ids=lambda code: code.name)
def test_each_code_is_what_clients_take_it_for(code: IntEnum) -> None:
    assert code.name in UNNAMED or getattr(KafkaError, OTHER_NAMES.get(code.name, code.name)) == code
