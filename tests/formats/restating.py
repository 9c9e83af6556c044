"""The sizes and checksums in a warehouse whose files were changed, stated anew as docs/reference/format.md tells them.

    manifests ─► manifest lists ─► metadata.json ─► its properties          documents

Written from that page alone, so that it also shows that others can check a warehouse by it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from formats import relocation


def restate(warehouse: Path) -> None:
    """What was never stated, as in formats before 3, still is not; but lengths of manifests always were."""
    for path in warehouse.rglob("snap-*.avro"):
        path.write_bytes(_restated_list(path.read_bytes(), path.parent))
    for path in warehouse.rglob("*.json"):
        if path.name.endswith(".metadata.json"):
            path.write_text(json.dumps(_restated_metadata(json.loads(path.read_text("utf-8")))))
        elif "checksum" in (content := json.loads(path.read_text("utf-8"))):
            del content["checksum"]
            path.write_text(json.dumps({**content, "checksum": _json_checksum([_place(path), content])}, indent=1))


def _checksum(content: bytes) -> str:
    return sha256(content).hexdigest()[:16]


def _json_checksum(value: Any) -> str:
    return _checksum(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii"))


def _place(path: Path) -> str:
    """The topic's folder, `lithify`, and the path below it; of a document of the warehouse `.lithify` and its name."""
    parts = path.parts
    at = max((n for n, part in enumerate(parts) if part == "lithify"), default=len(parts) - 1)
    return "/".join(parts[at - 1 :])


def _restated_list(content: bytes, folder: Path) -> bytes:
    avro = relocation.AvroParts.of(content)
    (block,) = avro.blocks
    found: list[tuple[int, Path]] = []
    for manifest in sorted(folder.glob("*-m*.avro")):
        name = f"file://{manifest}".encode()
        named = relocation.written_long(len(name)) + name
        if (at := block.data.find(named)) >= 0:
            found.append((at, manifest))
    for at, manifest in sorted(found, reverse=True):  # from the end, so that what is before stays where it is
        length = block.data.index(b".avro", at) + len(b".avro")
        _, end = relocation.read_long(block.data, length)
        size = relocation.written_long(manifest.stat().st_size)
        block = block.with_data(block.data[:length] + size + block.data[end:])
    header = dict(avro.header)
    if b"lithify.manifests" in header:
        header[b"lithify.manifests"] = " ".join(_checksum(m.read_bytes()) for _, m in sorted(found)).encode()
    changed = (header, [block]) != (avro.header, avro.blocks)
    return avro.written(header, [block]) if changed else content


def _restated_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    for snapshot in snapshots.values():
        path = Path(snapshot["manifest-list"].removeprefix("file://"))
        if "lithify.list" in snapshot["summary"] and path.exists():
            content = path.read_bytes()
            snapshot["summary"]["lithify.list"] = f"{len(content)} {_checksum(content)}"
    properties = metadata["properties"]
    if "lithify.refs" in properties:
        ids = {name: metadata["refs"][name]["snapshot-id"] for name in json.loads(properties["lithify.refs"])}
        refs = {name: _of_snapshot(snapshots[at]) for name, at in ids.items()}
        properties["lithify.refs"] = json.dumps(refs, sort_keys=True, separators=(",", ":"))
        ours = {n: v for n, v in properties.items() if n.startswith("lithify.") and n != "lithify.checksum"}
        properties["lithify.checksum"] = _json_checksum([metadata["table-uuid"], ours])
    return metadata


def _of_snapshot(snapshot: Mapping[str, Any]) -> str:
    ours = {n: v for n, v in snapshot["summary"].items() if n.startswith(("lithify.", "total-"))}
    return _json_checksum([snapshot["snapshot-id"], snapshot["sequence-number"], snapshot["manifest-list"], ours])
