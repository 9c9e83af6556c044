"""`verify` has nothing to say of what the verbs did, whatever they did in whatever order (C1 to C5, C33).

A topic in memory, every verb and many settings, clocks that jump, others at work while a round goes
on; then it is held against each of its kept versions. What it finds in damaged data is in
`tests/spark/test_verify.py` and `tests/unit/service/proof/test_verify.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from lithify.errors import InvalidSettingError, RefusedError
from lithify.model.settings.table import Strategy
from lithify.service.change.alter import alter, uncompact
from lithify.service.change.cut import delete_records, truncate
from lithify.service.change.retain import retain
from lithify.service.change.undo import undo
from lithify.service.proof.verify import verify
from lithify.testing.oracle_inspector import OracleInspector
from support.generated.logs import a_record
from support.topics.memory_topic import ORDERS, MemoryTopic

VERSIONS = st.sampled_from([(), (("v", (3).to_bytes(8, "big")),), (("v", (-9).to_bytes(8, "big", signed=True)),)])
RECORDS = st.lists(
    a_record(
        key=st.sampled_from([b"a", b"b", b"c", b"", None]),
        value=st.sampled_from([b"1", b"2", b"", None]),
        timestamp=st.integers(900, 1100),
        headers=VERSIONS,
        partition=st.just(0),
    ),
    min_size=1,
    max_size=6,
)
CONFIG = st.fixed_dictionaries(
    {
        "compaction_mode": st.sampled_from(["in-place", "side-by-side"]),
        "cleanup_policy": st.sampled_from(["compact", "compact,delete", "delete"]),
        "compaction_strategy": st.sampled_from(get_args(Strategy)),
        "null_key": st.sampled_from(["drop", "retain"]),
        "empty_value": st.sampled_from(["value", "tombstone"]),
        "delete_retention_ms": st.sampled_from([0, 20, 1000]),
        "retention_ms": st.sampled_from([-1, 60]),
        "retention_bytes": st.sampled_from([-1, 400]),
        "min_compaction_lag_ms": st.sampled_from([0, 0, 40]),
        "min_compaction_lag_bytes": st.sampled_from([0, 0, 200]),
        "segment_bytes": st.sampled_from([64, 1024]),
        "segment_max_dead_ratio": st.sampled_from([0, 0.5, 1, 1]),
    }
)
OFFSETS = st.floats(0, 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), RECORDS),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(st.just("wait"), st.sampled_from([1, 30, 1000, -20])),
        st.tuples(st.just("append meanwhile"), RECORDS),
        st.tuples(st.just("delete meanwhile"), OFFSETS),
        st.tuples(st.just("delete"), OFFSETS),
        st.tuples(st.just("truncate"), OFFSETS),
        st.tuples(st.sampled_from(["retain", "undo", "uncompact"]), st.none()),
        st.tuples(st.just("alter"), CONFIG.flatmap(lambda config: st.sampled_from(sorted(config.items())))),
    ),
    max_size=14,
)


class Driver:
    """Does steps to a topic; what a verb refuses is passed over."""

    def __init__(self, config: dict[str, object]) -> None:
        self.topic = MemoryTopic(**config, compaction_strategy_header="v")

    def do(self, step: str, value: object) -> None:
        topic, warehouse = self.topic, self.topic.warehouse
        at = round(value * topic.log().log_end_offset) if isinstance(value, float) else 0
        verbs: dict[str, Callable[[], object]] = {
            "append": lambda: topic.append(value),  # type: ignore[arg-type]
            "compact": topic.compact,
            "wait": lambda: topic.clock.sleep(value / 1000),  # type: ignore[operator]
            "append meanwhile": lambda: topic.compact(meanwhile=lambda: topic.append(value), times=1),  # type: ignore[arg-type]
            "delete meanwhile": lambda: topic.compact(
                meanwhile=lambda: delete_records(warehouse, ORDERS, 0, at), times=1
            ),
            "delete": lambda: delete_records(warehouse, ORDERS, 0, at),
            "truncate": lambda: truncate(warehouse, ORDERS, 0, at, below_compacted=True),
            "retain": lambda: retain(warehouse, ORDERS),
            "undo": lambda: undo(warehouse, ORDERS),
            "uncompact": lambda: uncompact(warehouse, ORDERS, lose_trimmed=True),
            "alter": lambda: alter(warehouse, ORDERS, {value[0].replace("_", "."): value[1]}),  # type: ignore[index]
        }
        with suppress(RefusedError):
            verbs[step]()


@settings(max_examples=150, deadline=None)
@given(CONFIG, STEPS)
def test_what_the_verbs_did_is_no_finding(config: dict[str, object], steps: list[tuple[str, object]]) -> None:
    try:
        driver = Driver(config)
    except InvalidSettingError:
        return
    for step, value in steps:
        driver.do(step, value)
    topic = driver.topic
    inspector = OracleInspector(topic.files)
    for against in (None, *(kept.version for kept in topic.warehouse.store.versions(ORDERS))):
        report = verify(topic.warehouse, inspector, ORDERS, against=against)
        assert report.findings == ()
