"""A round over the log directory of a broker that does not run, one log after the other (KAFKA-631).

    lock ─► of each log: round ─► checkpoint

Before the segments of a log are all replaced, its checkpoint is the old one: a round that was ended, or a broker's own
cleaner, begins there again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lithify.columnar.files.replaced import replacing
from lithify.errors import InvalidInputError, RefusedError
from lithify.errors.defects import as_lithify_error
from lithify.kafka_log.cleaning.clean_settings import CleanSettings, check_given
from lithify.kafka_log.cleaning.group_cleaner import writing
from lithify.kafka_log.cleaning.log_round import CleanerTasks, CleanRequest, LogRound, LogToClean
from lithify.kafka_log.cleaning.swapping import Files, FolderFiles
from lithify.kafka_log.cleaning.topic_settings import topic_settings
from lithify.kafka_log.directories.checkpoints import CLEANER, with_offset
from lithify.kafka_log.directories.described import described, directory_at
from lithify.kafka_log.directories.folders import LogFolder, held, is_in_use
from lithify.kafka_log.log_notes import NAMED_AT_MOST
from lithify.ports.engine import Progress
from lithify.reports.rounds.cleaned_logs import CleanedLog, CleanReport


@dataclass(frozen=True, slots=True)
class DirectoryCleaner:
    """`progress` gets groups of segments, `files` opens the folder of a log."""

    tasks: CleanerTasks
    request: CleanRequest
    progress: Progress = lambda _phase, _done, _total: None
    files: Callable[[Path], Files] = FolderFiles

    def clean(self) -> CleanReport:
        """A log that fails has its error in the report. Raises `RefusedError` or `DamagedError` if none can begin."""
        check_given(self.request.config)
        with described(self.request.path):
            return self._clean()

    def _clean(self) -> CleanReport:
        request = self.request
        _chosen(request, directory_at(request.path).folders)  # else a lock is left in a directory of something else
        with _alone(request):
            directory = directory_at(request.path)
            folders = _chosen(request, directory.folders)
            if not directory.was_shut_down and not request.after_crash:
                raise RefusedError(
                    f"{request.path}: its broker was not stopped in order, and will check the ends of its logs",
                    hint="start the broker and stop it in order, or clean what it will not check with --after-crash",
                )
            was_shut_down = directory.was_shut_down
            settings = topic_settings(request.path, request.config, folders, was_shut_down=was_shut_down)
            logs = [self._cleaned(one, settings[one.topic], was_shut_down=was_shut_down) for one in folders]
        return CleanReport(str(request.path), tuple(logs), request.dry_run)

    def _cleaned(self, folder: LogFolder, settings: CleanSettings, *, was_shut_down: bool) -> CleanedLog:
        to_clean = LogToClean(folder, self.files(folder.path), settings)
        log = LogRound(self.tasks, self.request, self.progress, to_clean)
        try:
            log.run(was_shut_down=was_shut_down)
            if log.report.changed:
                with writing(self.request.path):
                    _note_cleaned(self.request.path, folder, log.report.end)
        except Exception as error:
            failed = as_lithify_error(error, f"{folder.topic}-{folder.partition}")
            return replace(log.report, error=str(failed), error_code=failed.code)
        return log.report


@contextmanager
def _alone(request: CleanRequest) -> Iterator[None]:
    """Holds the lock of the directory. A dry run changes nothing there, not even by a lock. Raises `RefusedError`."""
    in_use = RefusedError(f"{request.path} is in use by a broker", hint="stop the broker first")
    if request.dry_run:
        if is_in_use(request.path):
            raise in_use
        yield
        return
    _check_owner(request.path)
    with held(request.path) as is_held:
        if not is_held:
            raise in_use
        yield


def _note_cleaned(root: Path, folder: LogFolder, end: int) -> None:
    path = root / CLEANER
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    with replacing(path) as file:
        file.write(with_offset(text, folder.topic, folder.partition, end).encode())


def _check_owner(path: Path) -> None:
    owner = path.stat().st_uid
    if os.geteuid() != owner:
        raise RefusedError(
            f"{path} is of the user {owner}, and this program runs as {os.geteuid()}",
            hint="run it as the user of the broker, which has to own the files that are written",
        )


def _named(folders: Sequence[LogFolder]) -> str:
    names = sorted({folder.topic for folder in folders if not folder.is_internal})
    return f"check the name: there is {', '.join(names[:NAMED_AT_MOST])}" if names else "name what log.dirs names"


def _chosen(request: CleanRequest, folders: Sequence[LogFolder]) -> list[LogFolder]:
    """Raises `RefusedError` or `InvalidInputError`."""
    if any(folder.path.samefile(request.path) for folder in folders):
        raise InvalidInputError(
            f"{request.path}: it is the folder of one partition", hint="name the directory around it, and the topic"
        )
    for topic in request.topics:
        own = [folder for folder in folders if folder.topic == topic]
        if not own:
            raise InvalidInputError(f"{request.path} has no log of a topic {topic}", hint=_named(folders))
        if tiered := [folder.path for folder in own if folder.tiered]:
            raise RefusedError(f"{tiered[0]}: {topic} has segments in tiered storage, which nothing cleans")
        if own[0].is_internal:
            raise RefusedError(f"{topic} is a topic of Kafka itself, whose brokers have rules of their own for it")
    return sorted(
        (folder for folder in folders if folder.topic in request.topics), key=lambda one: (one.topic, one.partition)
    )
