"""Durations, sizes, rates, times and counts as people write them, and back.

A bare number has the unit of the setting's name (milliseconds, bytes); with a unit it may be
written as `7d`, `30s`, `128MiB` or `20MB/s`. Decimal units are powers of 1000, binary ones
(`KiB`) of 1024.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DURATION_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZE_UNITS_BYTES = {
    "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_RATES = "such as 20MB/s, 500KiB/s or 1000000 (bytes per second)"
_EPOCH_MS = re.compile(r"@-?[0-9]{1,20}")
_NUMBER = re.compile(r"(-?\d{1,100}(?:\.\d{1,100})?)\s*([A-Za-z]*)")


def parse_duration_ms(text: str) -> int:
    """`7d`, `1.5h`, `250` (milliseconds) as milliseconds. Raises `ValueError`."""
    return _parse(text, _DURATION_UNITS_MS, "a duration such as 250, 30s, 5m, 12h or 7d")


def parse_size_bytes(text: str) -> int:
    """`128MiB`, `20MB`, `1g`, `4096` (bytes) as bytes. Raises `ValueError`."""
    return _parse(text, _SIZE_UNITS_BYTES, "a size such as 4096, 64KiB, 128MiB or 1GB")


def parse_rate_bytes(text: str) -> int:
    """`20MB/s`, or a bare size taken per second, as bytes per second. Raises `ValueError`."""
    rate = _parse(text.strip().removesuffix("/s"), _SIZE_UNITS_BYTES, f"a rate {_RATES}", text)
    if rate <= 0:
        raise ValueError(f"{text!r} is not a rate above zero, {_RATES}")
    if rate >= 2**63:
        raise ValueError(f"{text!r} is more than 64 bits of bytes per second")
    return rate


def parse_time_ms(text: str) -> int:
    """ISO 8601 (UTC unless it says otherwise) or `@EPOCH_MS`, as epoch milliseconds.

    Raises `ValueError`, also for a bare integer, which is an offset wherever both are accepted.
    """
    if _EPOCH_MS.fullmatch(text):
        return int(text[1:])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time: use ISO 8601, such as 2026-01-31T12:00:00Z, or @EPOCH_MS") from None
    if text.isdigit():
        raise ValueError(f"{text!r} could be an offset: write a time as ISO 8601 or @EPOCH_MS")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // _MILLISECOND


def format_time(epoch_ms: int) -> str:
    """Epoch milliseconds as ISO 8601 in UTC."""
    try:
        moment = _EPOCH + epoch_ms * _MILLISECOND
    except OverflowError:
        return f"@{epoch_ms}"  # outside of the years 1 to 9999
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_second(epoch_ms: int) -> str:
    """The same to the second, for tables."""
    text = format_time(epoch_ms)
    return text if text.startswith("@") else f"{text[:19]}Z"


def format_address(host: str, port: int) -> str:
    """`127.0.0.1:7660`, or `[::1]:7660`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_bytes(count: int) -> str:
    """Bytes for people: three significant figures, binary units."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{count} B" if unit == "B" else f"{size:.{_decimals(size)}f} {unit}"
        size /= 1024
    return f"{size:.{_decimals(size)}f} TiB"


def plural(number: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_duration(duration_ms: int) -> str:
    """Milliseconds for people: the two largest units that matter."""
    if duration_ms < 0:
        return f"-{format_duration(-duration_ms)}"
    if duration_ms < 1_000:
        return f"{duration_ms} ms"
    if duration_ms < 60_000:
        return f"{duration_ms / 1000:.1f} s"
    minutes, seconds = divmod(duration_ms // 1000, 60)
    if minutes < 60:
        return _two(minutes, "min", seconds, "s")
    hours, minutes = divmod(minutes, 60)
    return _two(hours, "h", minutes, "min") if hours < 48 else _two(hours // 24, "d", hours % 24, "h")


def _two(count: int, unit: str, rest: int, smaller: str) -> str:
    return f"{count} {unit} {rest} {smaller}" if rest else f"{count} {unit}"


def _decimals(size: float) -> int:
    return 0 if size >= 100 else 1 if size >= 10 else 2


def _parse(text: str, units: dict[str, int], expected: str, whole: str | None = None) -> int:
    match = _NUMBER.fullmatch(text.strip())
    factor = units.get(match[2].lower(), 0) if match and match[2] else 1
    if match is None or factor == 0:
        raise ValueError(f"{(whole or text)!r} is not {expected}")
    if "." not in match[1]:
        return int(match[1]) * factor  # exact for any size, as floats are not
    return round(float(match[1]) * factor)
