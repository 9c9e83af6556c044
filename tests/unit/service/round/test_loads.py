"""A round loads its topic once before it begins and once for its commit, and reads its manifests once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lithify.model.settings.topic_settings import settings_of
from lithify.model.topic.state import NewTopic
from lithify.service.change.streams import create_stream
from lithify.service.round.compact import RunRequest, compact
from lithify.service.write.append import append
from lithify.testing.oracle_engine import OracleEngine
from support.faults.ports import Injector, Kind, faulty
from support.faults.topics import NAME, records
from support.topics.replicas import two_warehouses

NEVER = 10**9


@pytest.mark.parametrize("in_a_stream", [False, True])
def test_the_loads_of_a_round(in_a_stream: bool, tmp_path: Path) -> None:
    warehouse, _ = two_warehouses("iceberg", tmp_path)
    if in_a_stream:
        create_stream(warehouse, NAME.stream, {})
    warehouse.store.create_topic(NewTopic(NAME, "orders", settings_of({}), 1, warehouse.clock.now_ms()))
    append(warehouse, NAME, [record._replace(partition=0) for record in records(range(9), keys=3)])
    counted, said = Injector(NEVER, Kind.FAILS), []
    report = compact(faulty(warehouse, counted), OracleEngine(warehouse.files), NAME, RunRequest(notes=said.append))
    calls = Counter(counted.calls)
    assert report.changed and report.space is not None
    assert len(said) == 1 and said[0].startswith(f"{NAME}: needs up to ")
    assert (calls["load"], calls["segments"]) == (2, 1), calls
