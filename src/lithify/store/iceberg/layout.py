"""How a topic is laid out as an Iceberg table: the names and kinds of its files.

docs/reference/format.md draws the folder. A recreated topic gets another one, so that it never contains old files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from lithify.columnar.files.access import local_path
from lithify.errors import WarehouseError
from lithify.model.names import TopicName
from lithify.model.stored_file import FileKind
from lithify.ports.documents import DocumentKind
from lithify.rules.lifecycle.sweeping import run_of

ICEBERG_FORMAT = 2
"""The version of Iceberg's table format that tables of topics have."""

NO_RETRIES = ("commit.retry.num-retries", "0")
"""PyIceberg's own retry sends stale properties and so loses state: Lithify refuses to write to a table that does
not forbid it."""

MAIN_BRANCH = "main"
"""The branch that Iceberg gives every table: the segments of the logs."""
VIEW_BRANCH = "compacted"
"""The branch of the table that names the segments of the compacted views (C33)."""

METADATA_FILES_KEPT = 20
"""Old `metadata.json` files that remain, for readers that have just got the location of the newest one."""


SORT_ORDER_ID = 1
"""Of the order of `table_columns`, as manifests name it."""


def identifier(name: TopicName) -> tuple[str, ...]:
    """The table of a topic in its catalog. A stream is one level of namespace, dots and all."""
    return (name.stream, name.topic)


def topic_name(table: tuple[str, ...]) -> TopicName:
    """The inverse of `identifier`, also for catalogs that take the dots of a stream for levels."""
    return TopicName(".".join(table[:-1]), table[-1])


def new_location(root: str, name: TopicName, new_id: str) -> str:
    """A new folder, of a unique name."""
    return f"{stream_folder(root, name)}/{_safe(name.topic)}-{new_id[-8:]}"


def stream_folder(root: str, name: TopicName) -> str:
    """Where the folders of a stream's topics are."""
    return f"{root}/{_safe(name.stream)}"


def own_location(given: str, new_id: str) -> str:
    """A new folder, within the one that a catalog gives to every table of that name."""
    return f"{given}/{new_id[-8:]}"


def check_lasting(location: str, name: TopicName, where: str) -> None:
    """Raises `WarehouseError` for a folder that is another one for other programs: its table stores it unchanged.

    A relative path depends on the folder that a program runs in. So does a URI of a file with a host, which is
    treated as a folder. What '..' means in a bucket depends on the program.
    """
    if local_path(location) is not None:
        return
    scheme, absolute, path = location.partition(":/")
    on_host = scheme.lower() == "file" and re.match("/(?!/|localhost/)", path)
    if not absolute or on_host or {".", ".."} & set(path.split("/")):
        raise WarehouseError(
            f"{name}: {where} would put it into {location}, which is not the same place for all programs",
            hint="write its `warehouse` as an absolute path without '.' and '..', such as file:///DIR or "
            "s3://BUCKET/DIR; nothing was changed",
        )


def as_named(given: str) -> str:
    """A file or folder that a user gave, as tables name it: of a path on this machine the absolute URI."""
    path = local_path(given) if "://" in given or given.startswith("file:/") else given
    return given.rstrip("/") if path is None else f"file://{os.path.abspath(path)}"  # noqa: PTH100 - resolve() follows links


def version_record(version: int, snapshot_id: int) -> str:
    """The name of the record of a closed version, one for each attempt to close it."""
    return f"{version:020d}-{snapshot_id:016x}.json"


def version_file(location: str, record: str) -> str:
    return f"{versions_folder(location)}/{record}"


def document_file(location: str, kind: DocumentKind, key: str = "") -> str:
    """Where a document of a topic is."""
    return f"{location}/lithify/{kind}{key and '/'}{key}.json"


def catalog_document_file(root: str, kind: DocumentKind) -> str:
    """Where a document of the whole catalog is."""
    return f"{root}/.lithify/{kind}.json"


def versions_folder(location: str) -> str:
    return f"{location}/lithify/versions"


def deleted_file(location: str) -> str:
    """The note of a running or interrupted deletion."""
    return f"{location}/lithify/deleted.json"


def superseded_file(location: str) -> str:
    return f"{location}/lithify/superseded.json"


_GIVEN = re.compile(
    r"(?:data/)?partition=\d+/\d{20}-[\w-]+(?:\.deletes)?\.parquet"  # rounds of format 1 wrote beside data/
    r"|metadata/[\w.-]+\.(?:metadata\.json|avro)"  # Iceberg names these, for us and for others
    r"|lithify/(?:\w+/)?[\w-]+\.json(?:\.\d+-\d+\.part)?"
)


def is_ours(relative_path: str) -> bool:
    """Whether a path within a topic's folder is one that Lithify gives to its files: no other is ever deleted."""
    return _GIVEN.fullmatch(relative_path) is not None


def never_created(paths: Sequence[str]) -> bool:
    """Whether these files of a folder were left by a creation that the catalog refused: another one came first."""
    return all(re.search(r"/metadata/snap-[\w-]+\.avro$", path) for path in paths)


def kind_of(relative_path: str) -> tuple[FileKind, str]:
    """What a file within a topic's folder is for, and the run in its name."""
    if not is_ours(relative_path):
        return FileKind.FOREIGN, ""
    folder, _, file = relative_path.rpartition("/")
    stem = file.removesuffix(".json")
    match folder:
        case "lithify/reports" if stem != file:
            return FileKind.OUTPUT, stem
        case "lithify/runs" if stem != file:
            return FileKind.HEARTBEAT, stem
        case "metadata" | "lithify/versions":
            return FileKind.ATTEMPT, ""
        case _ if file.endswith(".parquet"):
            return FileKind.OUTPUT, run_of(file)
        case _:
            return FileKind.DOCUMENT, ""


def lock_file(root: str, name: TopicName) -> str:
    """Where committers of a topic take turns; a stream's name cannot begin with a dot."""
    return f"{root}/.lithify/locks/{_safe(name.stream)}/{_safe(name.topic)}.lock"


def _safe(part: str) -> str:
    # '%' would be decoded by some readers of URIs, and '.' could make a name that means something.
    # Cut, because a file system takes names of 255 bytes and a topic may have nearly as many.
    return re.sub(r"[^A-Za-z0-9_-]", "_", part)[:100]
