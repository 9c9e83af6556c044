"""Log directories, and what is wrong with them, for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lithify.errors import InvalidInputError, RefusedError
from lithify.kafka_log.directories.checkpoints import CheckpointError
from lithify.kafka_log.directories.folders import LogDirectory, log_directory
from lithify.kafka_log.directories.tiered import TieredError


def directory_at(path: Path) -> LogDirectory:
    """What there is in it. Raises what `described` raises."""
    with described(path):
        return log_directory(path)


@contextmanager
def described(path: Path) -> Iterator[None]:
    """Raises what is wrong with a directory as `InvalidInputError` or `RefusedError`, with the file and what to do."""
    try:
        yield
    except CheckpointError as error:
        raise InvalidInputError(f"a checkpoint in it is damaged: {error}", hint="delete that file") from error
    except TieredError as error:
        raise RefusedError(
            f"{path}: {error}",
            hint="only segments as they are on brokers can be read: copy the topic from its cluster, which reads its "
            "tiered storage, with `lithify kafka ingest`",
        ) from error
    except OSError as error:
        what = f"{error.filename or path}: {error.strerror or error}"
        raise InvalidInputError(what, hint="name a directory that log.dirs names, or a copy") from error
