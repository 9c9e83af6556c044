"""Settings that do nothing under a policy are said to do nothing."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lithify.model.settings.topic_settings import settings_of, to_config
from lithify.reports.changed_settings import creation_notes


def notes(given: Mapping[str, str]) -> list[str]:
    return list(creation_notes(to_config(settings_of(given)), given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"retention.ms": "7d"}, ["retention.ms: no effect with cleanup.policy=compact; "]),
        ({"retention.ms": "1", "retention.bytes": "1"}, ["retention.ms, retention.bytes: no effect with "]),
        ({"retention.ms": "-1"}, []),
        ({"retention.ms": "7d", "cleanup.policy": "compact,delete"}, []),
        ({"cleanup.policy": "delete", "retention.ms": "7d"}, []),
        (
            {"cleanup.policy": "delete", "min.compaction.lag.ms": "1h", "null.key": "drop"},
            ["null.key, min.compaction.lag.ms: no effect with cleanup.policy=delete, "],
        ),
    ],
)
def test_what_does_nothing_is_named(given: Mapping[str, str], said: list[str]) -> None:
    found = notes(given)
    assert len(found) == len(said)
    assert all(note.startswith(start) for note, start in zip(found, said, strict=True))


def test_only_what_was_given_is_named() -> None:
    assert list(creation_notes(to_config(settings_of({"cleanup.policy": "delete"})), ())) == []
