"""Durations, sizes, rates and times, as people write them and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.model.settings.units import (
    format_bytes,
    format_duration,
    format_time,
    parse_duration_ms,
    parse_rate_bytes,
    parse_size_bytes,
    parse_time_ms,
)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("250", 250),
        ("250ms", 250),
        ("30s", 30_000),
        ("5m", 300_000),
        ("5min", 300_000),
        ("12h", 43_200_000),
        ("7d", 604_800_000),
        ("1.5h", 5_400_000),
        (" 7 D ", 604_800_000),
        ("-1", -1),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_durations(text, ms):
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4096", 4096),
        ("4096B", 4096),
        ("64KiB", 65_536),
        ("64k", 65_536),
        ("128MiB", 134_217_728),
        ("1GB", 10**9),
        ("1g", 2**30),
        ("2TiB", 2**41),
        ("0.5MB", 500_000),
    ],
)
def test_sizes(text, count):
    assert parse_size_bytes(text) == count


@pytest.mark.parametrize(("text", "rate"), [("20MB/s", 20_000_000), ("1KiB", 1024), (" 7 ", 7)])
def test_rates(text, rate):
    """A bare size is taken per second."""
    assert parse_rate_bytes(text) == rate


@pytest.mark.parametrize("text", ["", "x", "1x", "1 2", "1e3", "∞", "s", "--1", "1.s", "²", "9" * 5_000])
def test_what_is_no_number_with_a_unit_is_refused_by_name(text):
    for parse in (parse_duration_ms, parse_size_bytes):
        with pytest.raises(ValueError, match=r"is not a (duration|size) such as"):
            parse(text)


@pytest.mark.parametrize("text", ["0", "-1MB/s", "0/s"])
def test_a_rate_is_above_zero(text):
    """A rate of zero would never end."""
    with pytest.raises(ValueError, match="not a rate above zero"):
        parse_rate_bytes(text)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("@0", 0),
        ("@1700000000123", 1_700_000_000_123),
        ("@-5", -5),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14 22:13:20.123", 1_700_000_000_123),
        ("2023-11-15T00:13:20+02:00", 1_700_000_000_000),
        ("1970-01-02", 86_400_000),
    ],
)
def test_times(text, ms):
    """UTC unless they say otherwise."""
    assert parse_time_ms(text) == ms


@pytest.mark.parametrize(
    "text", ["", "@", "@x", "@1.5", "@--5", "@²", "17", "20230101", "yesterday", "2023-13-01", "1700000000000"]
)
def test_what_is_no_time_is_refused(text):
    """C37: a bare integer is an offset wherever both could stand."""
    with pytest.raises(ValueError, match=r"is not a time|could be an offset"):
        parse_time_ms(text)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_time_reads_back_as_it_was_written(ms):
    assert parse_time_ms(format_time(ms)) == ms


@pytest.mark.parametrize("ms", [10**17, -(10**17), 2**63 - 1])
def test_a_time_outside_of_the_calendar_is_written_as_a_number_and_reads_back(ms):
    assert parse_time_ms(format_time(ms)) == ms


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (10_240, "10.0 KiB"),
        (134_217_728, "128 MiB"),
        (2**50, "1024 TiB"),
    ],
)
def test_sizes_for_users(count, text):
    assert format_bytes(count) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "1.5 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (172_800_000, "2 d"),
        (-1500, "-1.5 s"),
    ],
)
def test_durations_for_users(ms, text):
    assert format_duration(ms) == text
