"""Tries an object store: lists a folder, and writes, reads and deletes one small file of a name of its own in it.

Only a write shows whether writing is allowed. All of it ends within `PROBE_S`, and a request is attempted less often
than others are (`remote_io`), so that what the store or the network said is told before that.

Where Arrow deletes a file of S3, it puts an empty object that stands for its folder, after other deletions as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyarrow.fs import AwsStandardS3RetryStrategy, FileSelector, FileSystem, S3FileSystem

from lithify.errors import WarehouseError
from lithify.store.iceberg.error_mapping import warehouse_error
from lithify.store.iceberg.io.folders import opened
from lithify.waits.deadline import within

PROBE_S = 12.0
ATTEMPTS = 2
CONTENT = b'{"written-by": "lithify doctor"}\n'


@dataclass(slots=True)
class Trial:
    """How far it came: with an `error`, `step` is what failed. `left` is a file that may be there still."""

    step: str = "opened"
    left: str | None = None
    error: WarehouseError | None = None


def probe(folder: str, file_name: str, properties: Mapping[str, str]) -> Trial:
    """Raises nothing that the store, or the way to it, is to blame for."""
    trial = Trial()
    try:
        within(PROBE_S, partial(_run, trial, folder, file_name, properties))
    except TimeoutError as error:
        hint = "check the endpoint, and that no firewall on the way to it drops packets"
        trial.error = WarehouseError(str(error), hint=hint)
        if trial.step == "written to":  # it may have come through
            trial.left = f"{folder}/{file_name}"
    except Exception as error:
        trial.error = warehouse_error(folder, error)
    return trial


def _run(trial: Trial, folder: str, file_name: str, properties: Mapping[str, str]) -> None:
    filesystem, path = _opened(folder, properties)
    file = f"{path.rstrip('/')}/{file_name}"
    trial.step = "listed"
    filesystem.get_file_info(FileSelector(path, recursive=False, allow_not_found=True))
    trial.step = "written to"
    with filesystem.open_output_stream(file) as sink:
        sink.write(CONTENT)
    trial.left = f"{folder}/{file_name}"
    trial.step = "read from"
    try:
        with filesystem.open_input_stream(file) as source:
            source.read()
        trial.step = "deleted from"
    finally:
        filesystem.delete_file(file)
        trial.left = None


def _opened(folder: str, properties: Mapping[str, str]) -> tuple[FileSystem, str]:
    bounded, path = opened(folder, properties)
    filesystem = bounded.real
    if isinstance(filesystem, S3FileSystem):
        _, (options,) = filesystem.__reduce__()
        # A small file is then one request, and none is begun that could remain unfinished.
        options["allow_delayed_open"] = True
        filesystem = S3FileSystem(**options, retry_strategy=AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS))
    return filesystem, path
