"""The names of data files and masks, and of their copies in replicas (C65).

    source     orders-1f0c93aa/data/partition=0/00000000000000000042-<run>-v3-0.parquet
    replica    orders-77b20de1/data/partition=0/00000000000000000042-<run of the copy>-of-1f0c93aa-<run>-v3-0.parquet
    origin     1f0c93aa/0/00000000000000000042-<run>-v3-0.parquet        of both, and of copies of the copy

A file is never changed, so two files of one origin have the same content; two masks the same positions, each with the
path of its own data file. `run_of` a copy is the run that copied it:
a sweep treats a copy as it treats what a round wrote (C45).
"""

from __future__ import annotations

import re

FOLDER_DIGITS = 8
"""Of the name of a topic's folder, how much is in the names of copies: the part that makes it unique."""

_COPY = re.compile(r"(?P<offset>\d{20})-[^-]+-of-(?P<folder>[^-]+)-(?P<rest>.+)")
_OWN_PARTS = 4  # the topic's folder, `data`, that of the partition, the name
_UNSAFE = re.compile(r"[^A-Za-z0-9_]")


def origin(path: str) -> str:
    """What a file and all its copies have in common, and no other file has."""
    folder, partition, name = _parts(path)
    copy = _COPY.fullmatch(name)
    if copy is not None:
        folder, name = copy["folder"], f"{copy['offset']}-{copy['rest']}"
    return f"{folder}/{partition}/{name}"


def copied_name(path: str, run_id: str) -> str:
    """The name of the copy of a file that a run makes."""
    folder, _, name = origin(path).split("/", 2)
    offset, _, rest = name.partition("-")
    return f"{offset}-{run_id}-of-{folder}-{rest}"


def is_copy(path: str) -> bool:
    """Whether a file is a copy, by its name."""
    return _COPY.fullmatch(path.rpartition("/")[2]) is not None


def was_written_to(path: str, own: str) -> bool:
    """Whether a file, or what it is a copy of, was written to `own`, a path from the topic's folder on."""
    if is_copy(path):
        return own.count("/") == _OWN_PARTS - 1 and origin(own) == origin(path)
    return f"/{path}".endswith(f"/{own}")


def _parts(path: str) -> tuple[str, str, str]:
    """Of a file, what is unique in its topic's folder, its partition, and its name."""
    *folders, partition, name = path.split("/")
    topic = folders[-2] if folders[-1] == "data" else folders[-1]
    return _UNSAFE.sub("_", topic)[-FOLDER_DIGITS:], partition.removeprefix("partition="), name
