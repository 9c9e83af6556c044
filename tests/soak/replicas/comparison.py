"""Whether the topics of a replica are those of their source: settings, logs, views, record by record (C63)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import zip_longest

from lithify.api.lake import Lake
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.rules.reading.pieces import Reading
from lithify.service.read.fetch import open_log
from soak.checks import AT_ONCE


def all_differences(source: Lake, target: Lake, names: Sequence[TopicName]) -> tuple[list[str], int]:
    """In words, how replicas are others than their sources, and how many records were compared."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda name: _Compared(source, target, name).differences(), names))
    return [text for texts, _ in found for text in texts], sum(records for _, records in found)


class _Compared:
    def __init__(self, source: Lake, target: Lake, name: TopicName) -> None:
        self._source, self._target, self._name = source, target, name
        self._records = 0

    def differences(self) -> tuple[list[str], int]:
        theirs = self._source.warehouse.store.load(self._name)
        ours = self._target.warehouse.store.load(self._name)
        found = [*self._of_states(theirs, ours), *self._of_records(theirs, ours)]
        return found, self._records

    def _of_states(self, theirs: TopicState, ours: TopicState) -> Iterator[str]:
        where = f"replica of {self._name}"
        if ours.replica is None or ours.replica.version != theirs.version:
            yield f"{where}: is {ours.replica}, and the source is at version {theirs.version}"
        if ours.settings != theirs.settings:
            yield f"{where}: its settings are {ours.settings}, not {theirs.settings}"
        for log, source in zip_longest(ours.logs, theirs.logs):
            # Which runs a log has seen is the replica's own, as its commits are.
            if log is None or source is None or replace(log, run_ids=source.run_ids) != source:
                yield f"{where}: has the log {log}, not {source}"

    def _of_records(self, theirs: TopicState, ours: TopicState) -> Iterator[str]:
        for log in theirs.logs:
            for compacted in (False, True):
                wanted, mine = (
                    tuple(open_log(lake.warehouse, state, log.partition, "earliest", Reading(compacted=compacted)))
                    for lake, state in ((self._source, theirs), (self._target, ours))
                )
                self._records += len(wanted)
                if wanted != mine:
                    different = next(pair for pair in zip_longest(wanted, mine) if pair[0] != pair[1])
                    yield (
                        f"replica of {self._name}[{log.partition}] {'compacted' if compacted else 'plain'}: "
                        f"{len(mine)} records, not {len(wanted)}; the first other one is {different[1]}, "
                        f"not {different[0]}"
                    )
