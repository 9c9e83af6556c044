"""Rounds of Lithify: on a warm session, on a cluster, and by the command with all that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
from filelock import FileLock
from platformdirs import user_cache_path

import keyed_segments
from cases import Log
from lithify.api.topic import Topic
from lithify.columnar.segment.segment_reader import read_segment
from support.servers.spark_cluster import a_cluster  # type: ignore[import-not-found]
from way import KEPT, shuffled_bytes, spark_session


def topic_of(log: Log, folder: Path) -> Topic:
    """A new topic that names the files of a log, compacted as far as the log is."""
    return keyed_segments.topic_of(log.segments, folder, log.clean[-1].end_offset if log.clean else 0)


@dataclass(slots=True)
class _OfTopic:
    """What both ways of Lithify do with their topic."""

    keeps_tombstones: ClassVar[bool] = True

    topic: Topic | None = None

    def kept(self) -> Iterable[pa.Table]:
        assert self.topic is not None
        warehouse, state = self.topic.warehouse, self.topic.state()
        for segment in warehouse.store.segments(state, [0]):
            yield from read_segment(warehouse.files.access, segment, columns=KEPT)

    def close(self) -> None:
        """Its session ends with its process."""


class LithifyWarm(_OfTopic):
    """A round, from its plan to its commit, on a session that has run rounds before."""

    @cached_property
    def session(self) -> Any:
        return self.started()

    def started(self) -> Any:
        return spark_session({})

    def prepare(self, log: Log, out: Path) -> None:
        _ = self.session
        self.topic = topic_of(log, out)

    def run(self) -> Mapping[str, float]:
        assert self.topic is not None
        shuffled_before = shuffled_bytes(self.session)
        (report,) = self.topic.compact(spark=self.session).logs
        phases = {f"{phase}_s": ms / 1000 for phase, ms in report.phases_ms.items()}
        moved = {"data_read_bytes": report.bytes_read, "data_written_bytes": report.bytes_written}
        return {**phases, **moved, "shuffled_bytes": shuffled_bytes(self.session) - shuffled_before}


@dataclass(slots=True)
class _OnCluster(LithifyWarm):
    """A round whose tasks run on a standalone cluster of this machine, on workers with a core each."""

    workers: ClassVar[int]
    ends: ExitStack = field(default_factory=ExitStack)

    def started(self) -> Any:
        return spark_session(self.ends.enter_context(a_cluster(self.workers)).conf)

    def close(self) -> None:
        self.session.stop()
        self.ends.close()


class LithifyOnOneWorker(_OnCluster):
    """A core in all."""

    workers = 1


class LithifyOnTwoWorkers(_OnCluster):
    """Two cores in all."""

    workers = 2


class LithifyCold(_OfTopic):
    """The command `lithify compact`, from its start to its end."""

    warmed: bool = False
    """Whether an archive of classes has been made, which a first start of Spark has made beside what follows it."""

    def prepare(self, log: Log, out: Path) -> None:
        self._await_left()
        self.topic, self.out = topic_of(log, out), out

    def run(self) -> Mapping[str, float]:
        command = [sys.executable, "-m", "lithify", "--warehouse", str(self.out), "compact", "orders"]
        subprocess.run(command, check=True, capture_output=True)
        if not self.warmed:  # in a turn that does not count
            self._await_left()
            with FileLock(user_cache_path("lithify") / "spark.jsa.lock"):  # the warm way's may be in the making
                self.warmed = True
        return {}

    @staticmethod
    def _await_left() -> None:
        """What a command leaves is this process's, and does not count any more."""
        with suppress(ChildProcessError):
            while os.wait():
                pass
