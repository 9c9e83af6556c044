"""Retained versions: what a commit that removes segments stores of the version that it closes.

    main      ── 11 ── 12 ── 13          13 removed segments, so it closed 12
    tag               lithify-12         keeps the snapshot, and with it the list of segments
    tag               lithify-12-view    the same of the compacted views, where there are any
    record            lithify/versions/<12>-<snapshot of 13>.json
                                         state and settings of 12; what 13 stopped naming, and when

`sweep` deletes by the records, so they outlive the tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lithify.errors import DamagedError
from lithify.errors.defects import readable
from lithify.model.segment import Segment, by_partition, volume_of
from lithify.model.settings.inheritance import own_names
from lithify.model.settings.topic_settings import stored_settings, to_stored
from lithify.model.sources.origin import origin_text
from lithify.model.topic.edit import TopicEdit
from lithify.model.topic.log import View
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.clocks import BEHIND_MS
from lithify.store.iceberg.io import checksums
from lithify.store.iceberg.layout import MAIN_BRANCH, VIEW_BRANCH
from lithify.store.iceberg.state.log_codec import log_from_json, log_to_json
from lithify.store.iceberg.state.replica_codec import replica_from_json, replica_to_json

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

_VIEW = "-view"


def tag(version: int) -> str:
    """The tag on the snapshot of a retained version."""
    return f"lithify-{version}"


def view_tag(version: int) -> str:
    """The tag on the snapshot of its compacted views."""
    return f"{tag(version)}{_VIEW}"


def stated_refs_after(
    metadata: TableMetadata,
    before: Iterable[int],
    kept: Iterable[int],
    moved: Mapping[str, Snapshot | None],
    tags: Mapping[str, int | None],
) -> dict[str, str]:
    """The new `lithify.refs` after a commit that moves or drops branches, and sets or drops tags.

    `before` and `kept` are the versions retained before and after it. Its other entries remain: a branch or tag that
    another program moved or dropped is not adopted (C48). With a version its tags are removed, there or not.
    """
    refs = checksums.stated_refs(metadata.properties)
    if refs is None:
        names = _tags_of(before)
        refs = checksums.refs_there(metadata, [MAIN_BRANCH, VIEW_BRANCH, *names])
    tagged = {name: refs.get(VIEW_BRANCH if name.endswith(_VIEW) else MAIN_BRANCH) for name, at in tags.items() if at}
    now = {name: checksums.ref_checksum(snapshot) for name, snapshot in moved.items() if snapshot is not None}
    left = _tags_of(kept)
    gone = {name for name, at in {**moved, **tags}.items() if at is None}
    gone |= {name for name in refs if checksums.TAG.fullmatch(name) and name not in left}
    return {name: of for name, of in {**refs, **tagged, **now}.items() if of is not None and name not in gone}


def _tags_of(versions: Iterable[int]) -> list[str]:
    return [name for version in versions for name in (tag(version), view_tag(version))]


def view_gone(state: TopicState) -> DamagedError:
    return _view_damage(state, f"the table does not have the branch {VIEW_BRANCH} that the last commit left")


def check_view(state: TopicState, partitions: Iterable[int], segments: tuple[Segment, ...]) -> None:
    """Raises `DamagedError` if these are not the segments of the views of `state`, as it counts them (C8)."""
    views = by_partition(segments)
    for partition in partitions:
        view = state.log(partition).view or View()
        volume = volume_of(views.get(partition, ()))
        if volume != view.volume:
            raise _view_damage(
                state,
                f"the branch {VIEW_BRANCH} has {volume.records} records in {volume.size_bytes} bytes of partition "
                f"{partition}, not {view.volume.records} in {view.volume.size_bytes}",
            )


def _view_damage(state: TopicState, what: str) -> DamagedError:
    return DamagedError(
        f"{state.name}: the compacted view of version {state.version} is lost: {what}",
        hint=f"set the branch {VIEW_BRANCH} of the table back, or drop the view "
        "with `lithify topic uncompact --lose-trimmed`",
    )


def closing_record(state: TopicState, edit: TopicEdit, no_longer_named: Iterable[str]) -> dict[str, Any]:
    """The record of `state`, which the commit of `edit` closes."""
    return {
        "version": state.version,
        "closed_ms": edit.closed_at_ms,
        "closed_by": edit.run_id,
        **({} if state.clock_ms is None else {"clock_ms": state.clock_ms}),
        "settings": to_stored(state.settings),
        "own_settings": sorted(state.own_settings),
        **({} if (origin := origin_text(state.origin)) is None else {"copy_of": origin}),
        "logs": [log_to_json(log) for log in state.logs],
        "verb": edit.verb.value,
        "no_longer_named": list(no_longer_named),
        **({} if state.replica is None else {"replica": replica_to_json(state.replica)}),
    }


def closings(
    records: Iterable[tuple[str, Mapping[str, Any]]], closed_by_ms: Mapping[str, int], now_ms: int
) -> dict[str, int]:
    """By path, when a commit last stopped naming it: of data files, and of the records themselves.

    The record of a commit that did not land may be among them. If its time for a file is too early, the
    record of the commit that landed has a later one. A record whose time is further ahead than clocks differ is of a
    clock that was wrong (C46): `closed_by_ms` says by when its commit had landed, as the store dates its file. Raises
    `DamagedError`.
    """
    latest_ms: dict[str, int] = {}
    for path, record in records:
        with readable(f"{path}: the record of a version"):
            closed_ms = int(record["closed_ms"])
            if closed_ms > now_ms + BEHIND_MS:
                closed_ms = min(closed_ms, closed_by_ms.get(path, closed_ms))
            for gone in (path, *record["no_longer_named"]):
                latest_ms[gone] = max(closed_ms, latest_ms.get(gone, closed_ms))
    return latest_ms


def closed_state(newest: TopicState, path: str, record: Mapping[str, Any]) -> TopicState:
    """The state of a retained version, from its record. Raises `DamagedError`."""
    with readable(f"{path}: the record of a version"):
        settings, clock_ms = stored_settings(record["settings"]), record.get("clock_ms")
        return replace(
            newest,
            version=record["version"],
            settings=settings,
            own_settings=own_names(record.get("own_settings"), settings),
            logs=tuple(log_from_json(partition, data) for partition, data in enumerate(record["logs"])),
            clock_ms=newest.clock_ms if clock_ms is None else int(clock_ms),
            replica=replica_from_json(record.get("replica")),
        )
