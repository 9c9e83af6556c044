"""Every error Lithify raises on purpose, with its exit code and what to do next.

    LithifyError                        1  something failed; nothing was lost
    ├── RefusedError                    2  the request was refused before anything was changed
    │   ├── UnknownTopicError              no such topic, or partition of it
    │   ├── UnknownGroupError              no such consumer group
    │   ├── TopicExistsError               `topic create` on an existing one
    │   ├── UnknownStreamError             no such stream
    │   ├── InvalidNameError               not a valid name of a stream or topic
    │   ├── InvalidSettingError            unknown name, bad value or contradiction
    │   ├── InvalidInputError              text or a file that cannot be parsed as records
    │   ├── InvalidRecordError             a record that the topic's settings refuse
    │   ├── OffsetOutOfRangeError          a start position outside of [start, end]
    │   ├── UnknownVersionError            a version that is not, or no longer, retained
    │   ├── PolicyError                    a verb that the topic's policy or mode excludes
    │   ├── ClockError                     a clock that is far from the commits of the topic
    │   ├── NothingToUndoError             no round that can be undone
    │   ├── UnusualSweepError              a person should check first what would be deleted
    │   ├── UnknownSourceError             no such topic in the Kafka or Pulsar cluster
    │   ├── AccessDeniedError              a gateway refuses who asks: no valid token, or not the right
    │   └── FencedError                    a log that ends elsewhere than its writer expects
    ├── ConflictError                      other writers committed first, too many times
    ├── UnknownOutcomeError                it cannot be determined whether the commit landed
    ├── RoundAbandonedError                a round was abandoned on request
    ├── RunExpiredError                    a run stalled for so long that its files were swept
    ├── LocationChangedError               the table's location is not the folder that the topic was created in
    ├── LogTruncatedError                  a reader's position is no longer in the log
    ├── PartitionTakenOverError            another member of the group reads a partition by now
    ├── VersionSweptError                  a reader's version was swept: its files are gone
    ├── DamagedError                       data that the metadata names is missing or damaged
    ├── AuditError                         a round's numbers do not add up: not committed
    ├── UnsupportedFormatError             a topic written by a newer Lithify
    ├── InsufficientSpaceError             not enough free space for the new segments
    ├── UnusableEnvironmentError           Java, Spark, catalog or warehouse not usable
    │   ├── JavaNotFoundError
    │   ├── WarehouseError
    │   ├── CoordinationError              the lease database
    │   ├── BrokerError                    a Kafka or Pulsar cluster that cannot be reached, or refuses the client
    │   ├── GatewayError                   a gateway that cannot be reached, or something else at its address
    │   └── ConnectorError                 Spark's Kafka connector, Kafka's client or Pulsar's jars are missing
    ├── BusyError                          a gateway has too much to do, or a client is too slow
    ├── SubscriptionBusyError              another consumer has the exclusive subscription of a Pulsar topic
    ├── SourceWentBackError                a Kafka log that ends below its copy
    ├── SourceLostError                    records that Kafka deleted before they were copied
    ├── RoundsFailedError                  every log of a run of `compact` failed
    ├── EngineError                        a Spark job failed
    │   └── EngineUnavailableError         Spark does not start, has died, or its workers have
    └── DefectError                        an unexpected exception
A cleaner quarantines a log by its `blames`."""

from __future__ import annotations

from typing import Any, ClassVar

from lithify.errors.blame import Blame as Blame
from lithify.errors.words import Worded


class LithifyError(Exception):
    """Base of all errors of this package: `str(error)` is one line for a person."""

    exit_code: ClassVar[int] = 1
    blames: ClassVar[Blame] = Blame.LOG
    is_outage: bool = False  # what it could not reach may come back by itself: a daemon that starts waits for it
    message, hint = Worded(flags=False), Worded()

    def __init__(self, message: str, *, hint: str = "") -> None:
        from lithify.errors.handled import without_secrets  # most commands end without an error

        text, hint = without_secrets(message, hint)
        super().__init__(text)
        self.message, self.hint = text, hint

    @property
    def code(self) -> str:
        """`UnknownTopic` for an `UnknownTopicError`; the base's code for a class that is defined elsewhere."""
        return next(kind.__name__ for kind in type(self).__mro__ if kind.__module__ == __name__).removesuffix("Error")

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class RefusedError(LithifyError):
    """The request was refused before anything was changed."""

    exit_code = 2


class UnknownTopicError(RefusedError):
    """No such topic, or no such partition of it."""

    blames = Blame.NONE


class UnknownGroupError(RefusedError):
    """No such consumer group."""


class TopicExistsError(RefusedError):
    """A topic of that name exists already."""


class UnknownStreamError(RefusedError):
    """No such stream."""


class InvalidNameError(RefusedError):
    """Not a valid name of a stream or topic."""


class InvalidSettingError(RefusedError):
    """An unknown setting, a bad value or a contradiction between two."""


class InvalidInputError(RefusedError):
    """Input that cannot be parsed as records: malformed JSON, wrong columns, not UTF-8."""


class InvalidRecordError(RefusedError):
    """A record that the topic's settings refuse, and its batch with it: the one at `index`, from 0, for `reason`."""

    index, reason = -1, ""

    def at(self, place: str, *, hint: str = "") -> InvalidRecordError:
        """The same error, naming the record by its source."""
        return InvalidRecordError(f"{place}: the record is refused: {self.reason}", hint=hint)


class OffsetOutOfRangeError(RefusedError):
    """A start position below the reader's start or above the log end (C37)."""


class UnknownVersionError(RefusedError):
    """No such version, or one that has expired."""


class PolicyError(RefusedError):
    """The topic's `cleanup.policy` or `compaction.mode` excludes this."""

    blames = Blame.NONE


class ClockError(RefusedError):
    """The clock is so far from the commits of a topic that no verb may drop anything by it (C46)."""

    blames = Blame.CLOCK


class NothingToUndoError(RefusedError):
    """No round can be undone: there was none, or the log was cut since, or its version has expired."""


class UnusualSweepError(RefusedError):
    """A sweep would delete an unusual share of what is stored, or what another catalog may need (C45)."""


class UnknownSourceError(RefusedError):
    """The Kafka or Pulsar cluster has no such topic, or no such partition of it."""


class AccessDeniedError(RefusedError):
    """A gateway refuses who asks: no valid token, one without the right, or a request from another web site."""


class FencedError(RefusedError):
    """A log does not end where this writer expects it: another writer has taken over, and nothing was appended."""


class ConflictError(LithifyError):
    """Other commits came first, more often than the gate retries."""

    blames = Blame.NONE


class UnknownOutcomeError(LithifyError):
    """The commit was sent, its answer was lost, and the log cannot tell whether it landed."""

    blames = Blame.STORE


class RoundAbandonedError(LithifyError):
    """The caller abandoned the round; nothing was changed."""

    blames = Blame.NONE


class RunExpiredError(LithifyError):
    """A run stalled for longer than `sweep.grace.ms`; its files were swept, so it cannot commit (C45)."""

    blames = Blame.NONE


class LocationChangedError(LithifyError):
    """Another program changed the location of a topic's table, or copied the folder of its warehouse (C47)."""


class LogTruncatedError(LithifyError):
    """A reader's position is no longer valid in the log (C7)."""


class PartitionTakenOverError(LithifyError):
    """Another member of a group has taken over a partition: positions in it cannot be committed (C58)."""


class VersionSweptError(LithifyError):
    """The files of a reader's version were swept (C7)."""


class DamagedError(LithifyError):
    """A file that the metadata names is missing or damaged (C8)."""


class AuditError(LithifyError):
    """The written segments violate a law of rounds: the round was not committed."""


class UnsupportedFormatError(LithifyError):
    """The topic was written in a format that this version does not support."""


class InsufficientSpaceError(LithifyError):
    """The warehouse has not enough free space for what a round may write (C42)."""

    blames = Blame.STORE


class UnusableEnvironmentError(LithifyError):
    """Something that Lithify needs is missing or unusable."""

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
    """A Kafka or Pulsar cluster does not answer in time, or refuses the credentials."""

    blames = Blame.STORE


class GatewayError(UnusableEnvironmentError):
    """A gateway does not answer in time, or another program, or a later version, answers at its address."""


class ConnectorError(UnusableEnvironmentError):
    """Spark's Kafka connector, Kafka's client for Python, or Pulsar's jars are missing or do not fit."""


class BusyError(LithifyError):
    """A gateway has too much to do now, or did not get the request in time: nothing was changed."""

    blames, is_outage = Blame.NONE, True


class SubscriptionBusyError(LithifyError):
    """Another consumer has the exclusive subscription of a Pulsar topic, such as the broker's own compaction."""

    blames = Blame.NONE


class SourceWentBackError(LithifyError):
    """A Kafka log ends below the log end of its copy: the topic was recreated, or its log truncated."""


class SourceLostError(LithifyError):
    """A Kafka log starts above the log end of its copy: Kafka deleted the records between before they were copied."""


class RoundsFailedError(LithifyError):
    """Every log of a run of `compact` failed, and is as it was before: `report` says why, log by log."""

    report: Any = None


class EngineError(LithifyError):
    """A Spark job of a round failed; the log is as it was before."""


class EngineUnavailableError(EngineError):
    """Spark does not start, has died, or has lost its workers; no log is the cause."""

    blames = Blame.ENGINE


class DefectError(LithifyError):
    """An unexpected exception; the text has its class and the place in the code."""
