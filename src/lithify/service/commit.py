"""Commits an edit of a topic; every change of an existing one is made here, but `repair` (C6, C44).

    load ─► decide (on the newest version) ─► files exist? ─► swap ──ok──► done
      ▲                                                       │
      └────── another commit was first ───────────────────────┤
      └────── the answer was lost: did it land? ──────────────┘

A swap asserts the version it was decided on, so a stale decision can never land. When the answer
of a swap is lost, the log's state tells whether it landed: it has the ids of its latest runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from tenacity import (
    Retrying,
    retry_if_exception_type,
    retry_if_not_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random_exponential,
)

from lithify.errors import (
    ConflictError,
    DamagedError,
    LithifyError,
    RunExpiredError,
    UnknownOutcomeError,
    UnknownTopicError,
)
from lithify.model.names import TopicName
from lithify.model.segment import sizes_of
from lithify.model.topic.edit import KEEPS_EPOCH, TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.ports.store import CommitUnknownError, StaleVersionError, Warehouse
from lithify.rules.compaction.eligible.horizon import committed_after
from lithify.rules.lifecycle.clocks import vouched_ms
from lithify.rules.lifecycle.copies.ownership import check_appends
from lithify.rules.lifecycle.landing import Landing, landing
from lithify.rules.lifecycle.replicas import check_done_to
from lithify.rules.lifecycle.sweeping import run_of

ATTEMPTS = 25
"""Swaps tried before a commit gives up."""
MAX_WAIT_S = 1.0
LOADS_AFTER_LOSS = 6
"""Times that the newest version is loaded after a lost answer, within some 8 seconds."""

Decide = Callable[[TopicState], TopicEdit | None]
"""Given the newest version: what to commit on it, or None if there is nothing left to commit."""


def commit(warehouse: Warehouse, name: TopicName, run_id: str, decide: Decide) -> TopicState:
    """Commits the edit that `decide` returns for the newest version, even while other writers commit.

    Returns the version that has it (the newest one if there was nothing to commit). Raises what
    `decide` and `check_written` raise, `ConflictError` after `ATTEMPTS`, or `UnknownOutcomeError`.
    """
    sent: list[tuple[TopicState, TopicEdit]] = []  # swaps whose answer was lost, until they are known not to land
    retrying = Retrying(
        retry=retry_if_exception_type(StaleVersionError),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.01, max=MAX_WAIT_S),
        sleep=warehouse.clock.sleep,
        reraise=True,
    )
    try:
        with warehouse.store.commit_lock(name):
            return retrying(_swap, warehouse, name, run_id, decide, sent)
    except UnknownOutcomeError:
        raise
    except Exception as error:
        if sent:  # whatever failed since says nothing of them
            raise _unknown(name, run_id) from error
        if isinstance(error, StaleVersionError):
            raise ConflictError(
                f"{name}: other writers committed first, {ATTEMPTS} times in a row",
                hint="try again, perhaps with fewer writers at once; nothing was changed",
            ) from error
        raise


def _swap(
    warehouse: Warehouse,
    name: TopicName,
    run_id: str,
    decide: Decide,
    sent: list[tuple[TopicState, TopicEdit]],
) -> TopicState:
    """One load, decision and swap. `sent` has the swaps of this run whose answer was lost, if they may still land."""
    state = _load_after(warehouse, name, sent)
    for base, edit in sent:
        match landing(edit, base, state, partial(warehouse.store.segments, state)):
            case Landing.LANDED:
                return state
            case Landing.UNKNOWN:
                raise _unknown(name, run_id)
    sent[:] = [(base, edit) for base, edit in sent if base.version == state.version]  # on another one none can land
    edit_now = _decided(warehouse, run_id, decide, state)
    if edit_now is None:
        return state
    edit_now = _marked(edit_now, state)
    try:
        return warehouse.store.commit(state, edit_now)
    except CommitUnknownError as error:
        sent.append((state, edit_now))
        raise StaleVersionError(str(error)) from error


def _decided(warehouse: Warehouse, run_id: str, decide: Decide, state: TopicState) -> TopicEdit | None:
    """The edit that `decide` returns for `state`, once its new files are known to exist.

    Its errors count only while `state` is the newest version. Otherwise a version or file may have expired
    since `state` was loaded, so it decides again on the newest version.
    """
    try:
        check_not_abandoned(state, [run_id])  # first, as `decide` may read its files
        edit = decide(state)
        if edit is not None:
            check_done_to(state, edit.verb)
            check_appends(state, edit)
            check_written(warehouse, state, edit)
        return edit
    except LithifyError as error:
        newest = warehouse.store.load(state.name)
        if (newest.identity, newest.version) == (state.identity, state.version):
            raise
        raise StaleVersionError(str(error)) from error


def _marked(edit: TopicEdit, base: TopicState) -> TopicEdit:
    """`edit`, with its run in the states of its logs (C6), and their new epoch, if its verb begins one (C44).

    It also gets the trusted time of the commit (C46), which is the time of its appends (C14).
    """
    logs = {partition: log.with_run(edit.run_id) for partition, log in edit.logs.items()}
    if edit.verb not in KEEPS_EPOCH:
        logs = {
            p: replace(log, epoch=base.log(p).next_epoch) if p in base.partitions else log for p, log in logs.items()
        }
    clock_ms = vouched_ms(base, edit.time_ms) if edit.clock_ms is None else edit.clock_ms
    if edit.verb is Verb.REPLICATE:  # the states are those of its source
        return replace(edit, logs=logs)
    settings = edit.settings or base.settings
    logs = {p: replace(log, committed=committed_after(log, settings, clock_ms)) for p, log in logs.items()}
    return replace(edit, logs=logs, clock_ms=clock_ms)


def _load_after(warehouse: Warehouse, name: TopicName, sent: list[tuple[TopicState, TopicEdit]]) -> TopicState:
    """The newest version. After a lost answer it is loaded with more retries: without it the outcome is unknown."""
    if not sent:
        return warehouse.store.load(name)
    asking = Retrying(
        retry=retry_if_exception_type(LithifyError) & retry_if_not_exception_type(UnknownTopicError),
        stop=stop_after_attempt(LOADS_AFTER_LOSS),
        wait=wait_exponential(multiplier=0.25, max=4.0),
        sleep=warehouse.clock.sleep,
        reraise=True,
    )
    try:
        return asking(warehouse.store.load, name)
    except LithifyError as error:
        raise _unknown(name, sent[-1][1].run_id) from error


def _unknown(name: TopicName, run_id: str) -> UnknownOutcomeError:
    return UnknownOutcomeError(
        f"{name}: the commit of run {run_id} was sent, but its answer was lost; it may have landed",
        hint="check with `lithify status` and `lithify consume` before you send the same again",
    )


def check_not_abandoned(newest: TopicState, run_ids: Iterable[str]) -> None:
    """Raises `RunExpiredError` if a sweep has abandoned one of these runs."""
    for run_id in sorted(set(run_ids).intersection(newest.abandoned)):
        raise RunExpiredError(
            f"{newest.name}: run {run_id} stalled for longer than sweep.grace.ms, and its files were swept",
            hint="run it again; nothing was changed",
        )


def check_written(warehouse: Warehouse, newest: TopicState, edit: TopicEdit) -> None:
    """Checks the files that `edit` names for the first time, before a commit on `newest`.

    Files that exist now exist until the swap: a sweep that deletes them abandons the run first, which
    makes a new version. Raises `RunExpiredError`, or `DamagedError` if a file is missing.
    """
    check_not_abandoned(newest, (run_of(segment.id) for segment in edit.written))
    missing = warehouse.files.missing(list(sizes_of(edit.written)))
    if missing:
        raise DamagedError(
            f"{missing[0]}: a file that was written for this commit was deleted before it",
            hint="run it again if it stalled for longer than sweep.grace.ms, as a sweep deleted the file then; if "
            "not, find the program that deletes files of the warehouse; nothing was changed",
        )
