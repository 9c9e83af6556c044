"""What is deleted, held to the contract: files that `sweep` deletes, versions that expire (C6, C7, C45)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lithify.errors import UnusualSweepError
from lithify.model.segment import sizes_of
from lithify.service.change.expire import expire_versions
from lithify.service.change.sweep import sweep
from support.checked.topic import NAME, CheckedTopic
from support.checked.trouble import RandomPlace, Trouble

UNUSUAL = 20
"""From so many files on that no version has named, a sweep may want a person's word."""


def check_sweep(topic: CheckedTopic, trouble: Trouble = None) -> None:
    """What goes is named by nothing that is kept, and long enough; what may go is found."""
    store, clock = topic.place.warehouse.store, topic.place.clock
    begun_ms, settings, others = clock.now_ms(), [topic.model.settings], _Others(topic)
    version = topic.state.version
    before = {file.path: file for file in store.stored_files(topic.state)}
    done = topic.attempt(lambda place: sweep(place.warehouse, NAME, delete=True), trouble, others.meanwhile)
    settings.append(topic.model.settings)
    topic.fences += not others.came and topic.state.version > version
    topic.look(begun_ms)
    state, now_ms = topic.state, max(begun_ms, clock.now_ms())  # others may have set it back
    states = [state, *(store.load_version(NAME, v.version) for v in store.versions(NAME))]
    needed = {path for state in states for path in sizes_of((*store.segments(state), *store.view(state)))}
    left = {file.path for file in store.stored_files(state)}
    assert not needed - left, "a file of a kept version was deleted"
    gone = before.keys() - left - others.gone
    versions_ms = min(s.versions_retention_ms for s in settings)
    for path in gone & topic.closed.keys():
        assert now_ms >= topic.closed[path][0] + versions_ms, f"{path} went too early (C7)"
    grace_ms = min(s.sweep_grace_ms for s in settings)
    for path in gone - topic.closed.keys():
        assert now_ms > before[path].modified_ms + grace_ms, f"{path} may be a running run's (C6)"
    unusual = isinstance(done.error, UnusualSweepError) and len(before.keys() - topic.closed.keys()) >= UNUSUAL
    if done.struck or unusual:
        return
    if done.error is not None:
        raise done.error
    for path in (topic.closed.keys() & left) - needed if not others.came else ():
        assert now_ms < topic.closed[path][1] + versions_ms, f"{path} may go and stays"


@dataclass(slots=True)
class _Others:
    """Verbs that run while a sweep is paused: what they delete is checked as theirs."""

    topic: CheckedTopic
    came: bool = False
    gone: set[str] = field(default_factory=set)

    def meanwhile(self, others: Callable[[], object], _: Sequence[str]) -> None:
        self.topic.look(self.topic.place.clock.now_ms())
        before = self._stored()
        others()
        self.came, self.gone = True, before - self._stored()

    def _stored(self) -> set[str]:
        return {file.path for file in self.topic.place.warehouse.store.stored_files(self.topic.state)}


def check_expired(topic: CheckedTopic, given_ms: int | None = None, trouble: Trouble = None) -> None:
    """C7: only versions that were closed long enough ago expire, and no newer one before an older."""
    store, clock, others = topic.place.warehouse.store, topic.place.clock, _Others(topic)
    before, times, settings = store.versions(NAME), [clock.now_ms()], [topic.model.settings]

    def act(place: RandomPlace) -> None:
        expire_versions(place.warehouse, NAME, now_ms=given_ms)

    done = topic.attempt(act, trouble, others.meanwhile)
    topic.look(times[0])
    times.append(clock.now_ms())
    settings.append(topic.model.settings)
    kept = store.versions(NAME)
    if others.came:
        return  # those who came know which of theirs are kept
    judged_ms = max(times) if given_ms is None else given_ms
    old = [v for v in before if judged_ms >= v.closed_ms + topic.model.settings.versions_retention_ms]
    assert kept == before[: len(kept)], "a newer version went before an older one"
    assert set(before) - set(kept) <= _from_the_first(before, old), "a version went too early (C7)"
    if done.error is None:
        assert not old or kept == before[: before.index(old[0])]
    elif not done.struck:
        raise done.error


def _from_the_first(versions: Sequence[object], old: Sequence[object]) -> set[object]:
    """The first of the old ones, newest first, and all behind it, which were closed before it."""
    return set(versions[versions.index(old[0]) :]) if old else set()
