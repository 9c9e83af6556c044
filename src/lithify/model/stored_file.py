"""Files in a topic's folder, for `sweep`: what each is for, and since when no version names it (C6, C45)."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class FileKind(Enum):
    """What a file is for, and so which commit could still name it."""

    OUTPUT = "written by a run, for any commit of it: a segment, a report"
    ATTEMPT = "written for one attempt of a commit: metadata, manifests, the record of a closed version"
    HEARTBEAT = "the heartbeat of a run"
    DOCUMENT = "another document of Lithify's, which no commit names"
    FOREIGN = "a file of another program: never deleted"


LOCAL_SCHEME = re.compile("^file:(//(localhost)?(?=/)|(?=/[^/]))")
"""What the URI of a local path begins with; Hadoop leaves out the slashes of the host."""


def local_folder(path: str) -> Path:
    """The absolute path of a folder, as a user writes it. `~nobody` remains as it is if no user has that name."""
    return Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111 - resolve() follows links


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
class OtherCommit:
    """Metadata in a topic's folder, of the newest commit that its catalog does not have."""

    path: str
    version: int | None
    metadata: frozenset[str] = frozenset()
    """All metadata files of the folder that the catalog has not named, as far as is known."""

    def problem(self, version: int | None) -> str:
        """What that means for a catalog that names this version."""
        return (
            f"the catalog is at version {version}, but {self.path} is version {self.version}, of commits that it does "
            "not have: it was restored from an earlier state, or another catalog commits to the same folder"
        )


@dataclass(frozen=True, slots=True)
class Closing:
    """Since when no version names a file, epoch ms. `was_named`: a version did, so no new commit will."""

    at_ms: int
    was_named: bool = True
