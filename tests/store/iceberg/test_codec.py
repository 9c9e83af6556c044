"""State and segments go through a table's metadata and manifests unchanged, whatever they are."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog

from lithify.errors import DamagedError, UnknownTopicError, UnsupportedFormatError
from lithify.model.message import EnvelopeFacts
from lithify.model.missed import DroppedDeletes, Undone
from lithify.model.segment import Mask, Segment, Volume
from lithify.model.settings.table import SETTINGS
from lithify.model.settings.topic_settings import TopicSettings, settings_of, to_config
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import (
    CommittedEnd,
    HeldTombstones,
    LastRecord,
    LogState,
    TombstoneStep,
    View,
    WrittenBatch,
)
from lithify.model.topic.state import NewTopic
from lithify.rules.lifecycle.clocks import BEHIND_MS
from lithify.store.iceberg.commit.kept_versions import closings
from lithify.store.iceberg.manifests import writers
from lithify.store.iceberg.state import topic_codec
from lithify.store.iceberg.state.log_codec import log_from_json, log_to_json
from store.table_properties import as_of_format, set_sealed
from support.store.builders import NOW_MS, ORDERS, Place, some_records

OFFSETS = st.integers(0, 2**63 - 1)
TIMES = st.integers(-(2**63), 2**63 - 1)
VOLUMES = st.builds(Volume, OFFSETS, OFFSETS, st.integers(1, 2**62), st.just(0) | OFFSETS)
KEYS = st.one_of(st.none(), st.binary(max_size=16), st.just(b"\xff" * 16))

LOGS = st.builds(
    LogState,
    partition=st.just(0),
    log_start_offset=OFFSETS,
    first_dirty_offset=OFFSETS,
    log_end_offset=OFFSETS,
    generation=st.integers(0, 2**31),
    truncated=st.lists(OFFSETS, max_size=8).map(tuple),
    steps=st.lists(st.builds(TombstoneStep, OFFSETS, TIMES, OFFSETS), max_size=4).map(tuple),
    clean=VOLUMES,
    dirty=VOLUMES,
    oldest_dirty_timestamp_ms=st.none() | TIMES,
    last_record=st.none() | st.builds(LastRecord, OFFSETS, TIMES),
    run_ids=st.lists(st.text(max_size=12), max_size=8).map(tuple),
    last_round_ms=st.none() | TIMES,
    last_round=st.text(max_size=12),
    losers_removed=st.booleans(),
    deleted_below=OFFSETS,
    compacted_below=OFFSETS,
    round_required=st.text(max_size=40),
    uncovered=st.booleans(),
    held=st.none()
    | st.builds(HeldTombstones, OFFSETS, OFFSETS)
    | st.builds(HeldTombstones, OFFSETS, OFFSETS, st.integers(1, 2**62), st.booleans()),
    aged_before_ms=st.none() | TIMES,
    view=st.none()
    | st.builds(
        View,
        volume=VOLUMES,
        first_offset=st.none() | OFFSETS,
        start_offset=OFFSETS,
        last_record=st.none() | st.builds(LastRecord, OFFSETS, TIMES),
        losers_removed=st.booleans(),
    ),
    batches=st.lists(st.builds(WrittenBatch, st.text(max_size=36), OFFSETS, st.text(max_size=36)), max_size=4).map(
        tuple
    ),
    committed=st.lists(st.builds(CommittedEnd, OFFSETS, TIMES), max_size=4).map(tuple),
    epoch=st.integers(0, 2**63 - 1),
    dropped=st.lists(st.builds(DroppedDeletes, OFFSETS, OFFSETS, st.booleans(), st.booleans()), max_size=8).map(tuple),
    undone=st.none() | st.builds(Undone, OFFSETS, st.booleans()),
)

SEGMENTS = st.builds(
    Segment,
    path=st.just(""),
    partition=st.integers(0, 2),
    base_offset=st.integers(0, 2**62),
    end_offset=st.integers(2**62 + 1, 2**63 - 1),
    records=st.integers(1, 2**40),
    size_bytes=st.integers(1, 2**50),
    scan_bytes=st.integers(1, 2**50),
    min_timestamp_ms=TIMES,
    max_timestamp_ms=TIMES,
    null_keys=st.integers(0, 2**40),
    null_values=st.integers(0, 2**40),
    min_value_size=st.none() | st.integers(0, 2**31 - 1),
    min_key=KEYS,
    max_key=KEYS,
    envelopes=st.none()
    | st.builds(EnvelopeFacts, OFFSETS, OFFSETS, st.integers(-1, 2**62), st.integers(-1, 2**62), st.just(1)),
)


@given(LOGS)
def test_a_log_state_goes_through_json_unchanged(log: LogState) -> None:
    text = json.dumps(log_to_json(log))

    again = log_from_json(0, json.loads(text))
    assert again == log
    assert [_chunks(one) for one in (again, log)] == [_chunks(log)] * 2


def test_what_an_earlier_version_left_out_of_a_state_is_not_known() -> None:
    """C66, C53: it writes no counts of chunks, and reads what was written with them."""
    volume = Volume(3, 30, 2, 2)
    log = LogState(0, clean=volume, dirty=volume, view=View(volume), held=HeldTombstones(3, 4, 2, waits=False))
    text = log_to_json(log)
    assert (text["clean"], text["held"], text["view"]["volume"]) == ([3, 30, 2], [3, 4], [3, 30, 2])
    del text["chunks"], text["held_by_chunks"], text["view"]["chunks"]
    again = log_from_json(0, text)
    assert (again.clean, _chunks(again), again.held) == (volume, (0, 0, 0), HeldTombstones(3, 4))


def _chunks(log: LogState) -> tuple[int, int, int]:
    return log.clean.chunks, log.dirty.chunks, 0 if log.view is None else log.view.volume.chunks


@pytest.mark.parametrize(
    ("stored", "lacks", "view_lacks"),
    [
        ({"end": 9}, False, None),
        ({"end": 9, "last_round": 0}, True, None),
        ({"end": 9, "compacted_below": 4}, True, None),
        ({"end": 9, "last_round": 0, "losers_removed": False}, False, None),
        ({"end": 9, "last_round": 0, "view": {}}, True, True),
        ({"end": 9, "last_round": 0, "losers_removed": False, "view": {"losers_removed": False}}, False, False),
    ],
)
def test_a_log_that_does_not_say_whether_rounds_removed_records_is_taken_to_lack_some(
    stored: dict[str, object], lacks: bool, view_lacks: bool | None
) -> None:
    """Once a round was done, as an earlier Lithify does not say (C66)."""
    log = log_from_json(0, stored)
    assert (log.losers_removed, log.view and log.view.losers_removed) == (lacks, view_lacks)


@pytest.mark.parametrize("closed_ms", ["x", None, []])
def test_a_record_that_does_not_say_when_its_version_was_closed_is_named(closed_ms: object) -> None:
    with pytest.raises(DamagedError, match=r"versions/3\.json: the record of a version"):
        closings([("versions/3.json", {"closed_ms": closed_ms, "no_longer_named": []})], {}, 0)


def test_a_version_that_a_clock_which_was_ahead_has_closed_was_closed_when_its_record_was_there() -> None:
    """C46: as the store dates the record's file, where that is earlier; not for what clocks may differ."""
    ahead_ms = BEHIND_MS + 900
    records = [("versions/3.json", {"closed_ms": ahead_ms, "no_longer_named": ["a.parquet"]})]
    for written_ms, now_ms, closed_ms in ((100, 899, 100), (100, 900, ahead_ms), (ahead_ms + 1, 899, ahead_ms)):
        expected = {"versions/3.json": closed_ms, "a.parquet": closed_ms}
        assert closings(records, {"versions/3.json": written_ms}, now_ms) == expected
    assert closings(records, {}, 0)["a.parquet"] == ahead_ms


def test_a_new_log_takes_next_to_nothing() -> None:
    assert log_to_json(LogState(5)) == {}


@pytest.mark.parametrize("preset", ["kafka", "mapr"])
def test_settings_go_through_a_table_unchanged(iceberg: Place, preset: str) -> None:
    odd = {"min.cleanable.dirty.ratio": "0.1", "retention.ms": "-1", "max.compaction.lag.ms": str(2**63 - 1)}
    wanted = settings_of(odd, like=preset)

    iceberg.store.create_topic(NewTopic(ORDERS, "orders", wanted, 1, 0))

    assert iceberg.store.load(ORDERS).settings == wanted
    assert set(to_config(wanted)) == set(SETTINGS)


segment_paths = count()


@given(segments=st.lists(SEGMENTS, max_size=20), per_block=st.sampled_from([1, 3, 16]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_segments_go_through_manifests_unchanged(iceberg: Place, segments: list[Segment], per_block: int) -> None:
    """Also from blocks of one entry, as earlier versions have written them."""
    name = type(ORDERS)("default", f"topic{next(segment_paths)}")
    state = iceberg.store.create_topic(NewTopic(name, "t", TopicSettings(), 3, 0))
    named = tuple(
        replace(
            segment,
            path=f"{state.location}/data/é{n}",
            keys_indexed=n % 2 == 1,
            mask=None if n % 3 else Mask(f"{state.location}/data/{n}.deletes", n + 1, n + 7),
        )
        for n, segment in enumerate(segments)
    )

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writers, "ENTRIES_PER_BLOCK", per_block)
        after = iceberg.store.commit(state, TopicEdit("run", NOW_MS, {}, add=named))

    read = sorted(iceberg.store.segments(after), key=_path)
    assert read == sorted(named, key=_path)
    assert {s.path for s in read if s.keys_indexed} == {s.path for s in named[1::2]}  # which does not count for ==
    left = iceberg.store.commit(after, TopicEdit("run", NOW_MS, {}, remove=named[::2]))
    assert sorted(iceberg.store.segments(left), key=_path) == sorted(named[1::2], key=_path)


def test_another_format_is_refused_by_name(iceberg: Place, foreign: Catalog) -> None:
    state = iceberg.append(iceberg.create(), some_records("a"))
    table = foreign.load_table(("default", "orders"))
    with table.transaction() as newer:
        newer.set_properties({"lithify.format-version": str(topic_codec.NEWEST_FORMAT + 1)})

    today = topic_codec.NEWEST_FORMAT
    refused = rf"orders: it was written in format {today + 1}, .* up to {today} \(use the newer"
    for call in (
        lambda: iceberg.store.load(ORDERS),
        lambda: iceberg.store.commit(state, TopicEdit("run", NOW_MS, {})),
        lambda: iceberg.store.versions(ORDERS),
        lambda: iceberg.store.load_version(ORDERS, 1),
        lambda: iceberg.store.drop_topic(ORDERS),
    ):
        with pytest.raises(UnsupportedFormatError, match=refused):
            call()
    assert iceberg.store.topics() == (ORDERS,)


def test_a_feature_that_is_not_known_is_refused_by_name(iceberg: Place, foreign: Catalog) -> None:
    """Also where the format's number is, and for reading."""
    state = iceberg.append(iceberg.create(), some_records("a"))
    set_sealed(foreign.load_table(("default", "orders")), {"lithify.features": '["compacted-logs","fast-logs"]'})
    for call in (
        lambda: iceberg.store.load(ORDERS),
        lambda: iceberg.store.commit(state, TopicEdit("run", NOW_MS, {})),
        lambda: iceberg.store.drop_topic(ORDERS),
    ):
        with pytest.raises(UnsupportedFormatError, match=r"orders: it has the feature fast-logs, .* \(use a newer"):
            call()


def test_a_topic_with_a_feature_is_of_a_format_that_earlier_versions_refuse(iceberg: Place, foreign: Catalog) -> None:
    """As long as it has it; what does not name features leaves them."""
    state = iceberg.append(iceberg.create(), some_records("a"))
    table = foreign.load_table(("default", "orders"))
    formats = [table.properties["lithify.format-version"]]
    for features in (("compacted-logs",), None, ()):
        state = iceberg.store.commit(state, TopicEdit("run", NOW_MS, {}, features=features))
        assert state == iceberg.store.load(ORDERS)
        formats.append(table.refresh().properties["lithify.format-version"])
    assert formats == ["3", "4", "4", "3"]
    assert state.features == ()


def test_an_earlier_format_is_written_on_in_the_one_of_today(iceberg: Place, foreign: Catalog) -> None:
    """An older Lithify would drop what it does not know of a log's state, so it must refuse the topic from then on."""
    state = iceberg.append(iceberg.create(), some_records("a"))
    table = foreign.load_table(("default", "orders"))
    as_of_format(table, 1)
    earlier = iceberg.store.load(ORDERS)
    assert replace(earlier, logs=state.logs) == state

    iceberg.append(earlier, some_records("b"))

    assert table.refresh().properties["lithify.format-version"] == str(topic_codec.FORMAT_VERSION)


def test_the_epoch_of_a_log_that_an_earlier_format_did_not_count_is_0(iceberg: Place, foreign: Catalog) -> None:
    """C49: a place that was stored then cannot be told from one before a round of that Lithify.

    No other version can commit once the topic's format has epochs, so the epochs of its logs are reliable from then on.
    """
    state = iceberg.append(iceberg.create(partitions=2), some_records("a"))
    assert [log.epoch for log in state.logs] == [1, 1]
    as_of_format(foreign.load_table(("default", "orders")), 2)
    earlier = iceberg.store.load(ORDERS)
    assert [log.epoch for log in earlier.logs] == [0, 0]

    after = iceberg.append(earlier, some_records("b"))

    assert [log.epoch for log in iceberg.store.load(ORDERS).logs] == [0, 1]
    assert after.log(0).next_epoch == 1


def test_a_table_that_is_no_topic_is_left_alone(iceberg: Place, foreign: Catalog) -> None:
    iceberg.create(type(ORDERS)("default", "other"))
    schema = foreign.load_table(("default", "other")).schema()
    foreign.create_table(("default", "orders"), schema)

    with pytest.raises(UnknownTopicError, match="Lithify did not create it"):
        iceberg.store.load(ORDERS)
    with pytest.raises(UnknownTopicError):
        iceberg.store.drop_topic(ORDERS)
    assert iceberg.store.topics() == (type(ORDERS)("default", "other"),)
    assert len(dict(iceberg.store.change_tokens())) == 2, "which of them are topics, loading tells"
    assert foreign.table_exists(("default", "orders"))


@pytest.mark.parametrize("broken", [{"lithify.settings": "{"}, {"lithify.log.0": "7"}, {"lithify.created-ms": "x"}])
def test_state_that_cannot_be_read_is_no_state(iceberg: Place, foreign: Catalog, broken: dict[str, str]) -> None:
    iceberg.create()
    set_sealed(foreign.load_table(("default", "orders")), broken)

    with pytest.raises(DamagedError, match=r"orders: .*\.metadata\.json: the state"):
        iceberg.store.load(ORDERS)


def _path(segment: Segment) -> str:
    return segment.path
