"""Which records a log takes in (C16, and the settings on size and time)."""

from __future__ import annotations

import pytest

from lithify.model.record import Record
from lithify.rules.lifecycle.admission import refusal
from support.builders import some_settings

NOW = 10_000


def refused(record, *, keep_offsets=False, **config):
    return refusal(record, some_settings(**config), now_ms=NOW, keep_offsets=keep_offsets)


def test_a_record_with_key_and_value_is_taken():
    assert refused(Record(b"k", b"v")) is None


def test_a_tombstone_an_empty_key_and_an_empty_value_are_taken():
    """C12, C17."""
    for record in (Record(b"k", None), Record(b"", b"v"), Record(b"k", b"")):
        assert refused(record) is None


@pytest.mark.parametrize(("null_key", "reason"), [("reject", "null.key=reject"), ("drop", None), ("retain", None)])
def test_a_keyless_record_is_taken_unless_the_topic_rejects_it(null_key, reason):
    """C16: also with `--keep-offsets`."""
    for keep_offsets in (False, True):
        found = refused(Record(None, b"v"), null_key=null_key, keep_offsets=keep_offsets)
        assert found is None if reason is None else reason in (found or "")


@pytest.mark.parametrize(("size", "taken"), [(100, True), (101, False)])
def test_a_record_above_the_largest_size_is_refused(size, taken):
    """Key, value and headers count."""
    record = Record(b"key", b"v" * (size - 10), headers=(("hé", b"four"), ("", None)))
    assert record.size_bytes == size
    found = refused(record, max_message_bytes=100)
    assert (found is None) is taken
    assert taken or "max.message.bytes=100" in (found or "")


@pytest.mark.parametrize(("timestamp", "taken"), [(-1, False), (0, True), (NOW + 50, True), (NOW + 51, False)])
def test_a_timestamp_too_far_ahead_or_before_1970_is_refused(timestamp, taken):
    """It would hold the horizon back for ever (C14)."""
    assert (refused(Record(b"k", b"v", timestamp), message_timestamp_after_max_ms=50) is None) is taken


@pytest.mark.parametrize("timestamp", [-1, 10**15])
def test_with_kept_offsets_any_timestamp_is_taken(timestamp):
    """What is mirrored has been taken elsewhere; `status` names the segment that holds H back."""
    assert refused(Record(b"k", b"v", timestamp), keep_offsets=True) is None


@pytest.mark.parametrize("timestamp", [-1, 10**15])
def test_with_log_append_time_its_own_timestamp_does_not_matter(timestamp):
    """It is replaced by the time of the append."""
    assert refused(Record(b"k", b"v", timestamp), message_timestamp_type="LogAppendTime") is None
