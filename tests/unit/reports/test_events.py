"""The log of a cleaner as a person reads it."""

from __future__ import annotations

import pytest

from lithify.reports.events import CleanerEvent, EventKind

CASES = {
    EventKind.STARTED: (
        {"id": "alpha", "threads": 2, "interval_ms": 15_000, "lease_ms": 30_000, "shared": True},
        "cleaner alpha, 2 threads, checks every 15.0 s; shares the work with others, leases of 30.0 s",
    ),
    EventKind.LOOKED: (
        {"topics": 1_200, "due": 3, "overdue_ms": 61_000, "duration_ms": 12, "metadata_read": 4, "manifests_opened": 3},
        "3 topics of 1,200 due, 1 min 1 s overdue (checked for 12 ms)",
    ),
    EventKind.ROUND: (
        {
            "run_id": "f00",
            "version": 7,
            "changed": True,
            "partitions": [0, 2],
            "records_in": 1_000,
            "records_out": 10,
            "removed": 990,
            "bytes_read": 2_048,
            "bytes_written": 1_024,
            "overdue_ms": 0,
            "duration_ms": 900,
        },
        "orders: 2 logs, 1,000 → 10 records, read 2.00 KiB, wrote 1.00 KiB, in 900 ms, version 7, run f00",
    ),
    EventKind.FAILED: (
        {"partition": 3, "error": "a file is missing", "error_code": "Damaged", "failures": 2, "retry_ms": 60_000},
        "orders: partition 3 failed 2 times, again at 1970-01-01T00:01:00.000Z: [Damaged] a file is missing",
    ),
    EventKind.QUARANTINED: (
        {"partition": 3, "error": "a file is missing", "error_code": "Damaged", "failures": 8, "retry_ms": None},
        "orders: partition 3 failed 8 times and is quarantined until `lithify quarantine release`: "
        "[Damaged] a file is missing",
    ),
    EventKind.ABANDONED: (
        {"partition": 0, "error": "the cleaner is stopping", "error_code": "Damaged"},
        "orders: partition 0: [Damaged] the cleaner is stopping",
    ),
    EventKind.CONFLICT: (
        {"partition": 0, "error": "5 times", "error_code": "Damaged"},
        "orders: partition 0: [Damaged] 5 times",
    ),
    EventKind.RETAINED: (
        {"version": 4, "partitions": [0], "records": 1, "bytes": 100},
        "orders: 1 record past retention removed, 100 B, version 4",
    ),
    EventKind.INHERITED: (
        {"version": 4, "settings": {"null.key": "drop", "retention.ms": "5"}},
        "orders: inherited null.key=drop, retention.ms=5 from its stream, version 4",
    ),
    EventKind.EXPIRED: ({"versions": [3, 2]}, "orders: 2 versions expired"),
    EventKind.SWEPT: ({"files": 1, "bytes": 1_024}, "orders: 1 file deleted, 1.00 KiB"),
    EventKind.TROUBLE: (
        {"error": "s3://lake\ncannot be reached", "error_code": "Damaged"},
        "orders: [Damaged] s3://lake cannot be reached",
    ),
    EventKind.RECOVERED: (
        {"what": "checks of the topics", "duration_ms": 90_000},
        "checks of the topics: works again, after 1 min 30 s",
    ),
    EventKind.WAITING: ({"text": "job 3 waits for executors"}, "job 3 waits for executors"),
    EventKind.WAITED: ({"text": "executors have registered"}, "executors have registered"),
    EventKind.STOPPED: ({"reason": "SIGTERM"}, "SIGTERM"),
}
ABOUT_NO_TOPIC = (
    EventKind.STARTED,
    EventKind.LOOKED,
    EventKind.RECOVERED,
    EventKind.WAITING,
    EventKind.WAITED,
    EventKind.STOPPED,
)


@pytest.mark.parametrize("kind", EventKind)
def test_every_event_has_a_line(kind):
    facts, text = CASES[kind]
    topic = None if kind in ABOUT_NO_TOPIC else "orders"
    line = CleanerEvent(kind, 0, "alpha", topic, facts).line().text
    assert line.split(None, 2)[1:] == [kind.value, text]
    assert "\n" not in line


def test_alone_it_says_so():
    facts = CASES[EventKind.STARTED][0] | {"shared": False}
    assert "run only this one cleaner" in CleanerEvent(EventKind.STARTED, 0, "alpha", None, facts).line().text


def test_its_json_is_flat():
    event = CleanerEvent(EventKind.SWEPT, 0, "alpha", "orders", {"files": 1, "bytes": 2})
    assert event.to_json() == {
        "time": "1970-01-01T00:00:00.000Z",
        "event": "swept",
        "cleaner": "alpha",
        "topic": "orders",
        "files": 1,
        "bytes": 2,
    }
