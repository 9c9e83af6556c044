"""One broker for all tests of the section; every test has topics of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.kafka_broker import KafkaBroker, a_broker


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    with a_broker() as running:
        yield running
