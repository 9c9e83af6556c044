"""Reports of rounds as documents of their topic (C42): which fields are stored, under which names.

What is printed may change without them: a new field of a report is stored once it is named here. A document without it,
of an earlier version, has its default then; names of later versions are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lithify.reports.rounds.round import LogReport, Losers, RoundReport

_Fields = Mapping[str, tuple[type, ...]]
"""What is stored of a value, and its Python types in JSON."""

_INT, _TEXT, _BOOL, _NAMES = (int,), (str,), (bool,), (list, tuple)
_INT_OR_NULL, _TEXT_OR_NULL = (int, type(None)), (str, type(None))

_LOSERS: _Fields = dict.fromkeys(("superseded", "expired_tombstone", "no_key", "past_retention", "below_start"), _INT)

_LOG: _Fields = {
    "partition": _INT,
    "first_dirty_offset": _INT,
    "first_dirty_offset_after": _INT,
    "horizon": _INT,
    "horizon_limited_by": _TEXT,
    "log_start_offset": _INT,
    "log_start_offset_after": _INT,
    "log_end_offset": _INT,
    "deleted_below": _INT,
    "records_in": _INT,
    "records_out": _INT,
    "keys": _INT,
    "tombstones_in": _INT,
    "tombstones_out": _INT,
    "tombstones_held": _INT,
    "tombstones_unversioned": _INT,
    "losers": (dict,),
    "segments_in": _INT,
    "segments_kept": _INT,
    "segments_rewritten": _INT,
    "segments_merged": _INT,
    "segments_masked": _INT,
    "segments_waiting": _INT,
    "segments_written": _INT,
    "bytes_in": _INT,
    "bytes_out": _INT,
    "bytes_read": _INT,
    "bytes_written": _INT,
    "tombstones_expire_below": _INT,
    "tombstones_read_below": _INT_OR_NULL,
    "held_by": _NAMES,
    "missed_by": _NAMES,
    "backlog_read_below": _INT_OR_NULL,
    "values_expire_before_ms": _INT_OR_NULL,
    "phases_ms": (dict,),
    "changed": _BOOL,
    "error": _TEXT_OR_NULL,
    "error_code": _TEXT_OR_NULL,
}

_ROUND: _Fields = {
    "topic": _TEXT,
    "version": _INT,
    "changed": _BOOL,
    "logs": (list, tuple),
    "duration_ms": _INT,
    "now_ms": _INT,
    "now_given": _BOOL,
    "run_id": _TEXT,
    "groups_error": _TEXT_OR_NULL,
}


def round_to_json(report: RoundReport) -> dict[str, Any]:
    """The document; without the space of the topic, which is known only after the commit."""
    return {**_written(report, _ROUND), "logs": [_log_to_json(log) for log in report.logs], "space": None}


def round_from_json(data: Mapping[str, Any]) -> RoundReport:
    """The inverse of `round_to_json`.

    Raises `AttributeError`, `LookupError`, `TypeError` or `ValueError` for any other document.
    """
    given = _read(data, _ROUND)
    given["logs"] = tuple(_log_from_json(log) for log in data["logs"])
    return RoundReport(**given)


def _log_to_json(log: LogReport) -> dict[str, Any]:
    return {**_written(log, _LOG), "losers": _written(log.losers, _LOSERS)}


def _log_from_json(data: Mapping[str, Any]) -> LogReport:
    given = _read(data, _LOG)
    given |= {name: _names(name, given[name]) for name in ("held_by", "missed_by") if name in given}
    given["losers"] = Losers(**_read(data["losers"], _LOSERS))
    return LogReport(**given)


def _names(field: str, names: list[Any] | tuple[Any, ...]) -> tuple[str, ...]:
    """Groups. Raises `TypeError` if they are not names."""
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"{field} is {names!r:.100}")
    return tuple(names)


def _written(value: Any, names: _Fields) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def _read(data: Mapping[str, Any], names: _Fields) -> dict[str, Any]:
    """The fields that the document has. Raises `TypeError` for a value of another type."""
    given = {name: data[name] for name in names if name in data}
    for name, value in given.items():
        if type(value) not in names[name]:
            raise TypeError(f"{name} is {value!r:.100}")
    return given
