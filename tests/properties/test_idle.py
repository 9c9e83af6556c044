"""What the state of a log tells alone, held to what its segments tell (C14, C20, C21, C24, C28).

Logs grow by appends, rounds, deleted records and retention under changing settings; then the
answer of `may_be_due_at_ms` is compared with `assess` at every time at which anything can change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import pytest
from hypothesis import Phase, find, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from lithify.model.groups.reads import GroupRead, LogReads
from lithify.model.names import LogId, TopicName
from lithify.model.segment import Segment, Volume
from lithify.model.settings.topic_settings import TopicSettings
from lithify.model.topic.log import LogState
from lithify.rules.compaction.eligible.retention import gone_segments
from lithify.rules.lifecycle.cuts import records_deleted, retained
from lithify.rules.schedule.assessment import assess
from lithify.rules.schedule.idle import may_be_due_at_ms
from support.builders import some_settings
from support.generated.logs import some_records, with_whole_entries
from support.topics.pure_rounds import PureLog

ID = LogId(TopicName("default", "orders"), 0)
FAR_MS = 10**12

MayBeDue = Callable[[LogState, TopicSettings, int, LogReads], int | None]


@dataclass(frozen=True, slots=True)
class Case:
    """A log, its settings, a time to judge it at, and how far groups have read it."""

    state: LogState
    segments: tuple[Segment, ...]
    settings: TopicSettings
    now_ms: int
    reads: LogReads

    def times(self) -> list[int]:
        """From now on, every time next to one at which the clock can change something, and the end of time."""
        s = self.settings
        spans = (
            s.min_compaction_lag_ms,
            s.max_compaction_lag_ms,
            s.retention_ms,
            s.delete_retention_ms,
            s.tombstone_hold_max_ms,
        )
        moments = {t for segment in self.segments for t in (segment.min_timestamp_ms, segment.max_timestamp_ms)}
        moments |= {step.time_ms for step in self.state.steps}
        near = {m + span + by for m in moments for span in (0, *spans) for by in (-1, 0, 1, 2)}
        return [self.now_ms, *sorted(t for t in near if t > self.now_ms), FAR_MS]

    def is_due(self, now_ms: int) -> bool:
        return assess(self.state, self.segments, self.settings, now_ms, self.reads).verdict.due


DURATIONS = st.sampled_from([0, 1, 7, 30, 200])


@st.composite
def some_config(draw: st.DrawFn) -> dict[str, object]:
    policy = draw(st.sampled_from(["compact", "compact", "compact,delete", "delete"]))
    side_by_side = policy != "delete" and draw(st.booleans())
    least = draw(st.sampled_from([0, 0, 5, 40]))
    most = draw(st.sampled_from([-1, -1, 40, 300]))
    return {
        "cleanup_policy": policy,
        "compaction_mode": "side-by-side" if side_by_side else "in-place",
        "compaction_strategy": draw(st.sampled_from(["offset", "timestamp"])),
        "delete_retention_ms": draw(DURATIONS),
        "tombstone_hold_groups": draw(st.sampled_from(["", "g"])),
        "tombstone_hold_max_ms": draw(st.sampled_from([-1, 0, 30, 100])),
        "backlog_trim_groups": draw(st.sampled_from(["", "", "g"])) if side_by_side else "",
        "min_cleanable_dirty_ratio": draw(st.sampled_from([0, 0.3, 0.5, 1])),
        "min_compaction_lag_ms": least,
        "max_compaction_lag_ms": most if most == -1 else max(least, most),
        "min_compaction_lag_bytes": draw(st.sampled_from([0, 0, 0, 60, 200])),
        "compaction_threshold_bytes": draw(st.sampled_from([-1, -1, 100])),
        "retention_ms": draw(st.sampled_from([-1, 20, 100])),
        "retention_bytes": draw(st.sampled_from([-1, -1, 100, 300])),
        "null_key": "retain",
        "segment_bytes": draw(st.sampled_from([1024, 10**6])),
    }


@st.composite
def cases(draw: st.DrawFn, given: Mapping[str, object] = MappingProxyType({})) -> Case:
    """`given` are settings that are the same in all of them."""
    config = draw(some_config()) | given
    settings = some_settings(**config)
    log = PureLog()
    now_ms = draw(st.sampled_from([0, 50, 60, 100]))
    for _ in range(draw(st.integers(1, 6))):
        grow(draw, log, settings, now_ms)
        now_ms += draw(st.sampled_from([0, 1, 10, 60]))
    # A changed setting leaves the state as it is (C43), apart from what `rules/lifecycle/setting_changes.py` does.
    lags = ("min_compaction_lag_ms", "min_compaction_lag_bytes", "retention_ms", "retention_bytes")
    changed = dict(zip(lags, (0, 0, -1, -1), strict=True)) if draw(st.integers(0, 4)) == 0 else {}
    required = draw(st.sampled_from(["", "", "", "", "changed: null.key"]))
    state = replace(log.state, round_required=required or log.state.round_required)
    end = state.log_end_offset
    read = (GroupRead("g", draw(st.sampled_from([0, end // 2, end - end // 4, end, end]))),)
    holding, trimming = (read if settings.holding_groups else (), read if settings.trimming_groups else ())
    settings = some_settings(**{**config, **changed})
    return Case(state, log.segments, settings, now_ms + draw(st.integers(-20, 60)), LogReads(holding, trimming))


def grow(draw: st.DrawFn, log: PureLog, settings: TopicSettings, now_ms: int) -> None:
    """Something happens to the log."""
    match draw(st.sampled_from(["append", "append", "round", "round", "delete", "retain"])):
        case "append":
            first, *more = draw(some_records(most=4).map(with_whole_entries))
            gap = draw(st.sampled_from([0, 0, 0, 3]))
            log.append([first._replace(offset=log.state.log_end_offset + gap), *more])
        case "round" if settings.compacts:
            log.round(settings, now_ms)
        case "delete":
            before = draw(st.integers(log.state.log_start_offset, log.state.log_end_offset))
            log.state = records_deleted(ID, log.state, before, log.segments)
        case "retain" if settings.deletes:
            gone = gone_segments(log.state, log.segments, settings, now_ms)
            log.state = retained(log.state, gone, log.segments[len(gone) :], settings)
            log.segments = log.segments[len(gone) :]
        case _:
            pass


def objections(case: Case, may_be_due: MayBeDue) -> Iterator[str]:
    """What is wrong with the answers."""
    answer = may_be_due(case.state, case.settings, case.now_ms, case.reads)
    if answer is not None and answer < case.now_ms:
        yield f"{answer} is over at {case.now_ms}"
    for time_ms in case.times():
        is_due = case.is_due(time_ms)
        if is_due and may_be_due(case.state, case.settings, time_ms, case.reads) != time_ms:
            yield f"due at {time_ms}, asked then"
        if is_due and (answer is None or time_ms < answer):
            yield f"due at {time_ms}, said {answer} at {case.now_ms}"
    verdict = assess(case.state, case.segments, case.settings, case.now_ms, case.reads).verdict
    if not verdict.due and verdict.due_at_ms is not None and (answer is None or answer > verdict.due_at_ms):
        yield f"becomes due at {verdict.due_at_ms}, said {answer}"


@given(cases())
@profile(max_examples=300)
def test_no_log_is_due_before_its_state_says_that_it_may_be(case):
    assert list(objections(case, may_be_due_at_ms)) == []


@given(cases())
@profile(max_examples=300)
def test_where_the_horizon_is_the_log_end_and_age_takes_nothing_the_state_tells_all(case):
    """No look at manifests is wasted on logs with `compact` alone and no minimum lag."""
    settings = replace(case.settings, cleanup_policy="compact", min_compaction_lag_ms=0, min_compaction_lag_bytes=0)
    reads = replace(case.reads, trimming=())  # which whole segments groups have read, manifests say
    verdict = assess(case.state, case.segments, settings, case.now_ms, reads).verdict
    expected = case.now_ms if verdict.due else verdict.due_at_ms
    assert may_be_due_at_ms(case.state, settings, case.now_ms, reads) == expected


def later(answer: int | None) -> int | None:
    return None if answer is None else answer + 1


FLAWS: dict[str, MayBeDue] = {
    "never": lambda _state, _settings, _now_ms, _reads: None,
    "a millisecond late": lambda state, settings, now_ms, reads: later(
        may_be_due_at_ms(state, settings, now_ms, reads)
    ),
    "no round is required": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        replace(state, round_required=""), settings, now_ms, reads
    ),
    "no tombstones": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        replace(state, steps=()), settings, now_ms, reads
    ),
    "the ratio is never passed": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        state, replace(settings, min_cleanable_dirty_ratio=1), now_ms, reads
    ),
    "dirt waits a millisecond too long": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        state, replace(settings, min_compaction_lag_ms=settings.min_compaction_lag_ms + 1), now_ms, reads
    ),
    "the newest bytes wait for ever": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        state, replace(settings, min_compaction_lag_bytes=settings.min_compaction_lag_bytes + 40), now_ms, reads
    ),
    "what a round has left has no age": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        replace(state, clean=Volume()), settings, now_ms, reads
    ),
    "no age": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        state, replace(settings, retention_ms=-1), now_ms, reads
    ),
    "no size": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        state, replace(settings, retention_bytes=-1), now_ms, reads
    ),
    "groups hold everything": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        state, settings, now_ms, replace(reads, holding=(GroupRead("g", 0),))
    ),
    "groups let nothing go": lambda state, settings, now_ms, reads: may_be_due_at_ms(
        state, settings, now_ms, replace(reads, trimming=())
    ),
}
"""Versions of the function that are late in a case that is met soon."""
ONLY_TOMBSTONES = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 1, "delete_retention_ms": 7}
UNTRIMMED = {"compaction_mode": "in-place", "backlog_trim_groups": ""}
NEEDED: dict[str, Mapping[str, object]] = {
    "no tombstones": ONLY_TOMBSTONES,
    "no size": {"cleanup_policy": "delete", "retention_bytes": 100, "retention_ms": -1, **UNTRIMMED},
    "groups hold everything": {**ONLY_TOMBSTONES, "tombstone_hold_groups": "g"},
    "groups let nothing go": {
        "cleanup_policy": "compact",
        "compaction_mode": "side-by-side",
        "backlog_trim_groups": "g",
    },
}
"""Settings without which a flaw is seldom seen."""


@pytest.mark.parametrize("name", FLAWS)
def test_every_flaw_would_be_seen(name):
    flaw = FLAWS[name]
    found = find(
        cases(NEEDED.get(name, {})),
        lambda case: any(objections(case, flaw)),
        settings=profile(max_examples=4_000, phases=[Phase.generate], derandomize=True, database=None),
    )
    assert list(objections(found, may_be_due_at_ms)) == []
