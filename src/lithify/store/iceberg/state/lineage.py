"""What metadata files and records of closed versions say about a topic's earlier versions, for `repair`.

00006 ─ 00007 ─ 00008        metadata files, numbered by commits
00000 ─ 00001                those of a topic recreated in the same folder: it names what it replaces
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lithify.columnar.files.access import local_path
from lithify.errors import LithifyError, RefusedError
from lithify.errors.redaction import one_line
from lithify.model.formats.features import features_of
from lithify.model.remains import ClosedState
from lithify.model.segment import Segment
from lithify.model.settings.inheritance import own_names
from lithify.model.settings.topic_settings import settings_of
from lithify.model.sources.origin import origin_of, origin_text
from lithify.model.topic.state import NewTopic, TopicState
from lithify.rules.lifecycle.sweeping import run_of
from lithify.store.iceberg import layout
from lithify.store.iceberg.state import topic_codec
from lithify.store.iceberg.state.log_codec import log_from_json
from lithify.store.iceberg.state.replica_codec import replica_from_json

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

REPLACES = "lithify.replaces"
"""Table property: JSON list of the identities of topics that had this folder before a repair."""

_METADATA = re.compile(r"metadata/(\d+)-[\w-]+(?:\.gz)?\.metadata\.json")

Record = Mapping[str, Any]
"""A record of a closed version."""


def rebuilt(state: TopicState, segments: Iterable[Segment], replaces: Iterable[str]) -> dict[str, str]:
    """The properties of a topic recreated with these segments, in the folder of those that it replaces."""
    features = features_of(segments)
    return {
        **topic_codec.new_topic(
            NewTopic(state.name, state.original_name, state.settings, 0, state.created_ms, state.own_settings)
        ),
        **topic_codec.changed(topic_codec.FIRST_VERSION, state.settings, state.logs, None),
        **(topic_codec.featured(features) if features else {}),
        **({} if (origin := origin_text(state.origin)) is None else {topic_codec.COPY_OF: origin}),
        REPLACES: json.dumps(sorted(replaces)),
    }


def as_left(segments: Iterable[Segment], there: Collection[str]) -> tuple[Segment, ...]:
    """Segments as far as their files are there: one whose mask is lost has all of its records again."""
    left = (segment for segment in segments if segment.path in there)
    return tuple(s.unmasked if s.mask is not None and s.mask.path not in there else s for s in left)


def replaced(properties: Mapping[str, str]) -> tuple[str, ...]:
    """Identities of the topics that this one replaces."""
    with suppress(ValueError, TypeError):
        return tuple(json.loads(properties.get(REPLACES, "[]")))
    return ()


def claimed_version(properties: Mapping[str, str]) -> int | None:
    """The version that the properties name, even if the rest is damaged."""
    text = properties.get(topic_codec.VERSION, "")
    return int(text) if text.isdecimal() else None


def metadata_paths(location: str, paths: Sequence[str]) -> list[tuple[str, int]]:
    """Metadata files with their numbers, the newest first."""
    matches = ((path, _METADATA.fullmatch(path[len(location) + 1 :])) for path in paths)
    return sorted(((path, int(match[1])) for path, match in matches if match), key=lambda f: (-f[1], f[0]))


def chosen(location: str, paths: Sequence[str], given: str | None) -> Sequence[str]:
    """Which of a folder's `paths` are read: all, or the metadata `given` by its URI or path on this machine.

    Raises `RefusedError` if it is not one of them.
    """
    if given is None:
        return paths
    files = [path for path, _ in metadata_paths(location, paths)]
    for spelt in (layout.as_named, _resolved):
        if matches := [path for path in files if spelt(path) == spelt(given)]:
            return matches
    raise RefusedError(  # of none at all the topic would be rebuilt
        f"{given} is not a file of the topic's folder {location}",
        hint=f"give a *.metadata.json file in {location}/metadata; nothing was changed",
    )


def _resolved(path: str) -> str:
    """Without the links on its way."""
    local = local_path(layout.as_named(path))
    return path if local is None else os.path.realpath(local)


def read_all(
    read: Callable[[str], TableMetadata], location: str, paths: Sequence[str]
) -> tuple[dict[tuple[str, int], TableMetadata], dict[tuple[str, int], str]]:
    """All metadata files, the newest first; and those that `read` fails for, with the reason."""
    readable: dict[tuple[str, int], TableMetadata] = {}
    unreadable: dict[tuple[str, int], str] = {}
    for path, number in metadata_paths(location, paths):
        try:
            readable[path, number] = read(path)
        except Exception as error:  # damaged bytes fail in any way
            unreadable[path, number] = f"the file cannot be read: {one_line(str(error), 100)}"
    return readable, unreadable


def foreign_commits(metadata: TableMetadata) -> Iterator[str]:
    """Commits that are not Lithify's."""
    for snapshot in metadata.snapshots:
        summary = {} if snapshot.summary is None else snapshot.summary.additional_properties
        if topic_codec.RUN not in summary:
            what = "a commit" if snapshot.summary is None else snapshot.summary.operation.value
            records = summary.get("added-records", "0")
            added = f"{records} record{'' if records == '1' else 's'} added"
            yield f"snapshot {snapshot.snapshot_id} of another program: {what}, {added}"


def no_longer_named(records: Iterable[Record]) -> frozenset[str]:
    """Data files that commits stopped naming, if these records tell the truth."""
    return frozenset(path for record in records for path in record.get("no_longer_named", ()))


def landed(records: Collection[Record], runs: Collection[str]) -> Iterator[Record]:
    """Records whose commit certainly landed: it is one of `runs`, or a later record has it.

    Others may be of a commit that did not land.
    """
    for record in records:
        run = record.get("closed_by", "")
        if run in runs or any(
            _knows(later, run) for later in records if later.get("version", 0) > record.get("version", 0)
        ):
            yield record


def certain_masks(records: Collection[Record], masked: Collection[Segment]) -> frozenset[str]:
    """The masks in a folder that the newest version certainly has, if these records are true.

    A version had them: a closed one has their run. And no commit may have dropped them, unless it dropped the segment
    as well, or wrote another mask of it, which has all positions of this one. Masks of undone rounds are not certain.
    """
    known = {
        (partition, run)
        for record in records
        for partition, log in enumerate(record.get("logs", ()))
        for run in log.get("runs", ())
    }
    certain = {s.id: s for s in masked if (s.partition, run_of(s.id)) in known}
    for record in records:
        gone, run = record.get("no_longer_named", ()), record.get("closed_by", "")
        again = {s.path for s in masked if run_of(s.id) == run}
        for path in certain.keys() & set(gone):
            if certain[path].path not in gone and certain[path].path not in again:
                del certain[path]
    return frozenset(certain)


def known_runs(metadata: TableMetadata, state: TopicState) -> frozenset[str]:
    """Runs whose commits are part of a version."""
    closed = (version.closed_by for version in topic_codec.closed_versions(metadata.properties))
    return frozenset((*closed, *(run for log in state.logs for run in log.run_ids)))


def _knows(record: Record, run: str) -> bool:
    remembered = any(run in log.get("runs", ()) for log in record.get("logs", ()))
    return remembered or any(f"-{run}-" in path for path in record.get("no_longer_named", ()))


def last_closed(records: Iterable[Record]) -> ClosedState | None:
    """The newest version that was closed."""
    closed: list[ClosedState] = []
    for record in records:
        with suppress(LithifyError, LookupError, TypeError, ValueError):
            logs = tuple(log_from_json(p, data) for p, data in enumerate(record["logs"]))
            settings = settings_of(record["settings"])
            own = own_names(record.get("own_settings"), settings)
            origin, replica = origin_of(record.get("copy_of")), replica_from_json(record.get("replica"))
            closed.append(ClosedState(record["version"], settings, logs, own, origin, replica))
    return max(closed, key=lambda c: c.version, default=None)
