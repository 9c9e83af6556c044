"""What is wrong with log directories and their files, for people: as errors that name them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lithify.errors import DamagedError, InvalidInputError, RefusedError
from lithify.kafka_log.batches.frames import BatchError
from lithify.kafka_log.directories.checkpoints import CheckpointError
from lithify.kafka_log.directories.folders import LogDirectory, log_directory
from lithify.kafka_log.directories.tiered import TieredError
from lithify.kafka_log.segment_scan import MOST_FACTS, TooManyFacts

NEEDS_WHOLE = "a cleaner needs whole logs: start the broker, which cuts or fetches it again"


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
        raise InvalidInputError(
            f"a checkpoint in it is damaged: {error}",
            hint="restore it, or give a copy of the directory without that file",
        ) from error
    except TieredError as error:
        raise RefusedError(
            f"{path}: {error}",
            hint="only segments as they are on brokers can be read: copy the topic from its cluster, which reads its "
            "tiered storage, with `lithify kafka ingest`",
        ) from error
    except OSError as error:
        what = f"{error.filename or path}: {error.strerror or error}"
        raise InvalidInputError(what, hint=_hint(error, "name a directory that log.dirs names, or a copy")) from error


@contextmanager
def reading(path: Path, damaged: str = NEEDS_WHOLE) -> Iterator[None]:
    """Raises what is wrong with a segment as `DamagedError`, `InvalidInputError` or, if its scan would take too much
    memory, `RefusedError`; `damaged` is what to do with damage.
    """
    try:
        yield
    except BatchError as error:
        raise DamagedError(
            f"{path}, byte {error.position}: {error.what}",
            hint=f"start again, if the file has changed; else {damaged}",
        ) from error
    except TooManyFacts as error:
        raise too_many_facts(f"{path} has") from error
    except OSError as error:
        raise InvalidInputError(
            f"{path}: {error.strerror or error}",
            hint=_hint(error, "every machine that runs tasks has to be able to read the directories"),
        ) from error


def too_many_facts(what: str) -> RefusedError:
    return RefusedError(
        f"{what} more than {MOST_FACTS} changes of the leader epoch, producers with transactions, and aborted "
        "transactions, which would all be in memory",
        hint="copy the topic from its cluster with `lithify kafka ingest`, or import a copy without the oldest "
        "segments",
    )


def _hint(error: OSError, otherwise: str) -> str:
    if isinstance(error, PermissionError):
        return "run it as a user who may read all of the directory, such as the broker's, or give a copy"
    return otherwise
