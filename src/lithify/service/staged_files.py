"""Checks that the files a commit is about to name exist, and that no `sweep` may delete them (C6, C45)."""

from __future__ import annotations

from collections.abc import Iterable

from lithify.errors import DamagedError, RunExpiredError
from lithify.lifecycle.sweeping import run_of
from lithify.model.log import TopicEdit, TopicState
from lithify.ports.store import Warehouse


def check_not_abandoned(newest: TopicState, run_ids: Iterable[str]) -> None:
    """Raises `RunExpiredError` if a sweep has abandoned one of these runs."""
    for run_id in sorted(set(run_ids).intersection(newest.abandoned)):
        raise RunExpiredError(
            f"{newest.name}: run {run_id} stalled for longer than sweep.grace.ms, and its files were swept",
            hint="nothing was changed; run it again",
        )


def check_written(warehouse: Warehouse, newest: TopicState, edit: TopicEdit) -> None:
    """Checks the files that `edit` names for the first time, before a commit on `newest`.

    Files that exist now exist until the swap: a sweep that deletes them abandons the run first, which
    makes a new version. Raises `RunExpiredError`, or `DamagedError` if a file is missing.
    """
    check_not_abandoned(newest, (run_of(segment.path) for segment in edit.written))
    missing = warehouse.files.missing([segment.path for segment in edit.written])
    if missing:
        raise DamagedError(
            f"{missing[0]}: a file that was written for this commit was deleted before it",
            hint="nothing was changed; if it stalled for longer than sweep.grace.ms, a sweep deleted the file: "
            "run it again; if not, find the program that deletes files of the warehouse",
        )
