"""Files in a topic's folder, for `sweep`: what each is for, and since when no version names it (C6, C45)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class FileKind(Enum):
    """What a file is for, and so which commit could still name it."""

    OUTPUT = "written by a run, for any commit of it: a segment, a report"
    ATTEMPT = "written for one attempt of a commit: metadata, manifests, the record of a closed version"
    HEARTBEAT = "the heartbeat of a run"
    DOCUMENT = "another document of Lithify's, which no commit names"
    FOREIGN = "a file of another program: never deleted"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a topic's folder. `run_id` is the run that wrote it, if its name has one."""

    path: str
    size_bytes: int
    modified_ms: int
    kind: FileKind = FileKind.OUTPUT
    run_id: str = ""

    @property
    def is_data(self) -> bool:
        """Whether it holds records: of what runs write, only reports do not."""
        return self.kind is FileKind.OUTPUT and not self.path.endswith(".json")


@dataclass(frozen=True, slots=True)
class NamedFiles:
    """Paths that the metadata names. `needed` must exist; `others` may, and are kept."""

    needed: frozenset[str]
    others: frozenset[str] = frozenset()

    def __contains__(self, path: str) -> bool:
        return path in self.needed or path in self.others

    @property
    def all(self) -> frozenset[str]:
        return self.needed | self.others


@dataclass(frozen=True, slots=True)
class Closing:
    """Since when no version names a file, epoch ms. `was_named`: a version did, so no new commit will."""

    at_ms: int
    was_named: bool = True
