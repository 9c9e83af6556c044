"""Why members of slow groups could not continue, and whether the contract says so (C7, C49, C58).

truncated    it had read what was cut off            the feeder has truncated that log
trimmed      it had not read what was cut off        the feeder has deleted records of it
recreated    another topic has the name              the feeder has deleted the topic
missed       a delete that it had not read is gone   tombstones expire, and none is held for the group
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lithify.errors import (
    CoordinationError,
    LithifyError,
    LogTruncatedError,
    PartitionTakenOverError,
    UnknownOutcomeError,
    UnknownTopicError,
    VersionSweptError,
    WarehouseError,
)
from soak.feeder import Deletion
from soak.journal import LogJournal, TopicJournal
from soak.outages import Outages
from soak.topics import DAY_MS, GROUP

_KINDS = (
    ("missed", re.compile(r"removed deletes")),
    ("recreated", re.compile(r"was deleted")),
    ("trimmed", re.compile(r"the log starts at")),
    ("truncated", re.compile(r"was truncated|the log ends at")),
)
_GONE = re.compile(
    r"is missing|is gone|no longer exists|not there any more|no such topic|does not exist|deleted and recreated|no file"
)
_START = re.compile(r"the log starts at (\d+)")
_PARTITION = re.compile(r"-(\d+): ")


@dataclass(frozen=True, slots=True)
class Interruption:
    """An error of a member of a group. What happened to the topic is judged at the end, when all of it is known."""

    topic: str
    time_ms: int
    error: LithifyError
    journal: TopicJournal
    """That of the topic as it was then, which may have been recreated since."""
    was_reset: bool
    """Whether the group was set back since its last commit: what it had read past is held for it no longer."""

    @property
    def kind(self) -> str:
        """In a word, for the figures."""
        match self.error:
            case LogTruncatedError():
                return next((kind for kind, says in _KINDS if says.search(str(self.error))), "lost")
            case PartitionTakenOverError():
                return "taken over"
            case VersionSweptError():
                return "swept"
            case _:
                return type(self.error).__name__

    def is_explained(self, deletions: Sequence[Deletion], outages: Outages) -> bool:
        """Whether the contract lets it happen here."""
        text = str(self.error)
        recreated = any(d.topic == self.topic and d.begun_ms - 1_000 <= self.time_ms for d in deletions)
        match self.kind:
            case "truncated":
                return recreated or any(log.truncations for log in self._logs())
            case "trimmed":
                start = _START.search(text)
                return recreated or (
                    start is not None and any(int(start[1]) <= log.deleted_below for log in self._logs())
                )
            case "missed":
                expire, held = self.journal.settings.delete_retention_ms < DAY_MS, is_held(self.journal)
                return (expire and (self.was_reset or not held)) or any(log.truncations for log in self._logs())
            case "taken over" | "swept":
                return True
            case _ if isinstance(self.error, CoordinationError | WarehouseError | UnknownOutcomeError):
                return outages.explain(self.time_ms, text) is not None
            case _:
                return recreated and (isinstance(self.error, UnknownTopicError) or bool(_GONE.search(text)))

    def _logs(self) -> list[LogJournal]:
        """The log that the error names."""
        named = _PARTITION.search(str(self.error))
        return [log for log in self.journal.logs if named is None or log.partition == int(named[1])]

    def __str__(self) -> str:
        return f"{self.topic}: a member of its group: {type(self.error).__name__}: {self.error}"


def is_held(journal: TopicJournal) -> bool:
    """Whether tombstones of the topic wait for its group (C61)."""
    return GROUP in journal.settings.holding_groups
