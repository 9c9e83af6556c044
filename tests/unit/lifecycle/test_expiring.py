"""Which kept versions are too old (C6)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithify.model.settings.topic_settings import settings_of
from lithify.model.stored_file import Closing, StoredFile
from lithify.model.topic.edit import KeptVersion
from lithify.rules.lifecycle.expiring import expiry_ms, unexpired, without_restored
from lithify.rules.lifecycle.sweeping import may_be_swept

TIMES = st.integers(-(2**40), 2**42)


def kept(*closed_ms: int) -> tuple[KeptVersion, ...]:
    """Kept versions, newest first."""
    return tuple(KeptVersion(100 - n, ms, "r") for n, ms in enumerate(closed_ms))


def test_without_a_time_all_stay() -> None:
    assert unexpired(kept(3, 2, 1), None) == kept(3, 2, 1)
    assert unexpired((), None) == unexpired((), 5) == ()


@given(st.lists(TIMES, max_size=8), TIMES)
def test_none_that_was_closed_before_stays_and_what_stays_are_the_newest(closed_ms: list[int], before_ms: int) -> None:
    versions = kept(*closed_ms)
    left = unexpired(versions, before_ms)
    assert left == versions[: len(left)]
    assert all(version.closed_ms >= before_ms for version in left)
    assert len(left) == len(versions) or versions[len(left)].closed_ms < before_ms


@given(TIMES, st.integers(0, 2**41), TIMES)
def test_a_version_goes_exactly_when_its_files_may_be_swept(closed_ms: int, retention_ms: int, now_ms: int) -> None:
    settings = settings_of({"versions.retention.ms": retention_ms})
    goes = not unexpired(kept(closed_ms), expiry_ms(settings, now_ms))
    assert goes == may_be_swept(StoredFile("a", 1, now_ms), Closing(closed_ms), settings, now_ms)


def test_restored_files_are_taken_off_the_newest_versions():
    assert without_restored({3: 10, 7: 5}, 0) == {3: 10, 7: 5}
    assert without_restored({3: 10, 7: 5}, 4) == {3: 10, 7: 1}
    assert without_restored({3: 10, 7: 5}, 8) == {3: 7, 7: 0}
    assert without_restored({3: 10, 7: 5}, 99) == {3: 0, 7: 0}
