"""The failures of a log are counted exactly, whenever the document that has them can be read or written (C31)."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from lithify.daemons.cleaner.failures import MOST_UNWRITTEN, Failures
from lithify.errors import DamagedError, WarehouseError
from lithify.service.documents import failures_of
from support.topics.memory_topic import MemoryTopic

ALL_WORKS, LOST = (True, True), None
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["failed", "failed", "failed", "got through"]),
        st.tuples(st.booleans(), st.sampled_from([True, False, LOST])),
    ),
    max_size=MOST_UNWRITTEN,
)
"""What happens to a log, and whether its failures can be read and written then; `LOST`: written, without an answer."""


@given(STEPS, STEPS)
def test_every_failure_is_counted_once(first: Sequence[tuple[str, tuple[bool, bool | None]]], second: object) -> None:
    topic = MemoryTopic(partitions=2)
    store = topic.warehouse.store
    read, write = store.get_document, store.put_document
    works: tuple[bool, bool | None] = ALL_WORKS

    def get(*given: object) -> object:
        if not works[0]:
            raise WarehouseError("cannot be read")
        return read(*given)  # type: ignore[arg-type]

    def put(*given: object) -> None:
        if works[1] is not False:
            write(*given)  # type: ignore[arg-type]
        if not works[1]:
            raise WarehouseError("cannot be written, or its answer is lost")

    failures, expected = Failures(topic.warehouse, lambda *_: None), [0, 0]
    with patch.object(store, "get_document", get), patch.object(store, "put_document", put):
        for partition, steps in enumerate((first, second)):
            for now_ms, (what, works) in enumerate(steps):  # type: ignore[arg-type]
                if what == "failed":
                    expected[partition] += 1
                    known = failures.failed(topic.state, partition, DamagedError("the file is missing"), now_ms)
                    assert 1 <= known.failures <= expected[partition]
                    assert known.failures == expected[partition] or not works[0]
                else:
                    expected[partition] = 0
                    failures.forget(topic.state, (partition,))
                if works == ALL_WORKS:
                    assert failures_of(store, topic.state) == failures.of(topic.state)
        works = ALL_WORKS
        assert {p: f.failures for p, f in failures.of(topic.state).items()} == {
            p: n for p, n in enumerate(expected) if n
        }
        failures.forget(topic.state, ())
    assert {p: f.failures for p, f in failures_of(store, topic.state).items()} == {
        p: n for p, n in enumerate(expected) if n
    }
