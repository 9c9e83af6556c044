"""Every error Lithify raises on purpose, with its exit code and what to do next.

    LithifyError                        1  something failed; nothing was lost
    ├── RefusedError                    2  the request cannot be taken as it stands
    │   ├── UnknownTopicError              no such topic, or partition of it
    │   ├── TopicExistsError               `topic create` on an existing one
    │   ├── InvalidNameError               a stream or topic name that cannot be one
    │   ├── InvalidSettingError            unknown name, bad value or contradiction
    │   ├── InvalidInputError              text or a file that does not hold records
    │   ├── InvalidRecordError             a record that the topic's settings refuse
    │   ├── OffsetOutOfRangeError          a start position outside of [start, end]
    │   ├── UnknownVersionError            a version that is not, or no longer, kept
    │   ├── PolicyError                    a verb that the topic's policy or mode excludes
    │   ├── ClockError                     a clock that is far from the commits of the topic
    │   ├── NothingToUndoError             no round that can be taken back
    │   ├── UnusualSweepError              so many files would be deleted that a person should look first
    │   └── UnknownSourceError             no such topic in the Kafka cluster
    ├── ConflictError                      someone else committed first, too many times
    ├── UnknownOutcomeError                nobody can tell whether the commit happened
    ├── RoundAbandonedError                a round was given up on request
    ├── RunExpiredError                    a run showed no sign of life for so long that its files were swept
    ├── LocationChangedError               the table's location is not the folder that the topic was created in
    ├── LogTruncatedError                  a reader's position is no longer in the log
    ├── VersionSweptError                  a reader's version was swept: its files are gone
    ├── DamagedError                       data that the metadata names is missing or broken
    ├── AuditError                         a round's numbers do not add up: not committed
    ├── UnsupportedFormatError             a topic written by a newer Lithify
    ├── InsufficientSpaceError             the warehouse has no room for the new segments
    ├── UnusableEnvironmentError           Java, Spark, catalog or warehouse not usable
    │   ├── JavaNotFoundError
    │   ├── WarehouseError
    │   ├── CoordinationError              the database of leases
    │   ├── BrokerError                    a Kafka cluster that cannot be reached, or refuses us
    │   └── ConnectorError                 Spark's Kafka connector or Kafka's client is missing
    ├── SourceWentBackError                a Kafka log that ends below what we have of it
    ├── SourceLostError                    records that Kafka has let go of before we had them
    ├── RoundsFailedError                  every log of a run of `compact` failed
    ├── EngineError                        a Spark job failed
    │   └── EngineUnavailableError         Spark does not start, has died, or its workers have
    └── DefectError                        an unexpected exception

Each says as well what is to blame (`Blame`): a cleaner quarantines a log for its own failures only.

A message says what happened and where (topic-partition, offset, file); `hint` says what
to do next. Both are printed by the command line on one line, without a traceback.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, ClassVar

_PASSWORD = re.compile(r"(://[^\s/:@]*):(?!PASSWORD@)\S*@")
"""Of a URL. What it may have in it unencoded is not known, so it goes on to the last '@' of the word.
Hints of ours show the form of an address, with that very word in the place of a password."""


def redacted(text: str) -> str:
    """Text of whatever origin without the passwords of the URLs in it."""
    return _PASSWORD.sub(r"\1:***@", text)


class Blame(Enum):
    """What has to change before the same is worth trying again (C31)."""

    LOG = "what is stored of a log, what was asked for, or a defect"
    STORE = "the store or catalog that all logs are in, and the room there"
    ENGINE = "Java, Spark, and the memory and room of the machines that rounds are done on"
    CLOCK = "the clock of this machine, or a person's word that it is right"
    NOBODY = "nothing: somebody else was faster, or it was wanted"


class LithifyError(Exception):
    """Base of all errors of this package: `str(error)` is one line for a person."""

    exit_code: ClassVar[int] = 1
    blames: ClassVar[Blame] = Blame.LOG

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message, self.hint = redacted(message), hint
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process borders (Spark tasks); the default would lose the hint.
        return (_rebuild, (type(self), self.message, self.hint))


def _rebuild(kind: type[LithifyError], message: str, hint: str) -> LithifyError:
    return kind(message, hint=hint)


class RefusedError(LithifyError):
    """The request was refused before anything was changed."""

    exit_code = 2


class UnknownTopicError(RefusedError):
    """No such topic, or no such partition of it."""

    blames = Blame.NOBODY


class TopicExistsError(RefusedError):
    """A topic of that name is there already."""


class InvalidNameError(RefusedError):
    """Not a stream or topic name."""


class InvalidSettingError(RefusedError):
    """An unknown setting, a bad value or a contradiction between two."""


class InvalidInputError(RefusedError):
    """Input that does not hold records: broken JSON, wrong columns, not UTF-8."""


class InvalidRecordError(RefusedError):
    """A record that the topic's settings refuse; the whole batch was refused with it.

    `index` is its place in the batch, from 0, and `reason` says why, so that whoever knows more of
    the batch (a file, a line) can name the record better.
    """

    index: int = -1
    reason: str = ""

    def at(self, place: str, *, hint: str = "") -> InvalidRecordError:
        """The same, which names the record by where it came from."""
        return InvalidRecordError(f"{place}: the record is refused: {self.reason}", hint=hint)


class OffsetOutOfRangeError(RefusedError):
    """A start position below the reader's start or above the log end (C37)."""


class UnknownVersionError(RefusedError):
    """No such version, or one that is no longer kept."""


class PolicyError(RefusedError):
    """The topic's `cleanup.policy` or `compaction.mode` excludes this."""

    blames = Blame.NOBODY


class ClockError(RefusedError):
    """The clock is so far from the commits of a topic that nothing is dropped by it (C46)."""

    blames = Blame.CLOCK


class NothingToUndoError(RefusedError):
    """No round can be taken back: there was none, or what it closed is no longer what was there."""


class UnusualSweepError(RefusedError):
    """A sweep would delete an unusual share of what is stored (C45)."""


class UnknownSourceError(RefusedError):
    """The Kafka cluster has no such topic, or no such partition of it."""


class ConflictError(LithifyError):
    """Another commit came first, more often than we were willing to try again."""

    blames = Blame.NOBODY


class UnknownOutcomeError(LithifyError):
    """The commit was sent, its answer was lost, and the log cannot tell whether it landed."""

    blames = Blame.STORE


class RoundAbandonedError(LithifyError):
    """Whoever asked for the round does not want it any more; nothing was changed."""

    blames = Blame.NOBODY


class RunExpiredError(LithifyError):
    """A run stood still for longer than `sweep.grace.ms`; its files were swept, so it cannot commit (C45)."""

    blames = Blame.NOBODY


class LocationChangedError(LithifyError):
    """The location of a topic's table was changed by something else (C47)."""


class LogTruncatedError(LithifyError):
    """A reader stands where the log no longer is (C7)."""


class VersionSweptError(LithifyError):
    """A reader outlived the files of its version (C7)."""


class DamagedError(LithifyError):
    """A file that the metadata names is missing or damaged (C8)."""


class AuditError(LithifyError):
    """The laws of a round do not hold for what was written: it was not committed."""


class UnsupportedFormatError(LithifyError):
    """The topic was written in a format that this version does not know."""


class InsufficientSpaceError(LithifyError):
    """The warehouse has not enough free space for what a round may write (C42)."""

    blames = Blame.STORE


class UnusableEnvironmentError(LithifyError):
    """Something Lithify stands on is missing or broken."""

    blames = Blame.ENGINE


class JavaNotFoundError(UnusableEnvironmentError):
    """No Java 17 or later, and none that came as a Python package."""


class WarehouseError(UnusableEnvironmentError):
    """The warehouse or catalog cannot be read or written."""

    blames = Blame.STORE


class CoordinationError(UnusableEnvironmentError):
    """The database of leases cannot be reached or used."""

    blames = Blame.STORE


class BrokerError(UnusableEnvironmentError):
    """A Kafka cluster that does not answer in time, or that refuses our credentials."""

    blames = Blame.STORE


class ConnectorError(UnusableEnvironmentError):
    """Spark's Kafka connector, or Kafka's client for Python, is missing or does not fit."""


class SourceWentBackError(LithifyError):
    """A Kafka log ends below our log end: its topic was made again, or its log truncated."""


class SourceLostError(LithifyError):
    """A Kafka log starts above our log end: what lies between was let go of before we had it."""


class RoundsFailedError(LithifyError):
    """Every log of a run of `compact` failed, and is as it was before: `report` says why, log by log."""

    report: Any = None


class EngineError(LithifyError):
    """A Spark job of a round failed; the log is as it was before."""


class EngineUnavailableError(EngineError):
    """Spark does not start, has died, or has lost what it works on; no log is to blame for it."""

    blames = Blame.ENGINE


class DefectError(LithifyError):
    """An unexpected exception; the text has its class and the place in the code."""
