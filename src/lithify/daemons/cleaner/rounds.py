"""Rounds of a batch of topics, under leases (C29, C31, C44).

    batch ─► leases ─► still due? ─► one run for all ─► reported, stored ─► leases released
                  └─ another cleaner holds it: skipped

A lost lease or a request to stop ends the run within a second or two. Commits made by then remain; the
other topics are unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.daemons.cleaner.cleaner_options import RoundProgress
from lithify.daemons.cleaner.event_reporter import EventReporter
from lithify.daemons.cleaner.failures import Failures
from lithify.daemons.cleaner.inherited_settings import Stored
from lithify.daemons.cleaner.work_finder import WorkFinder
from lithify.daemons.stop import Stop
from lithify.errors import Blame, ConflictError, EngineError, LithifyError, RoundAbandonedError
from lithify.errors.defects import as_lithify_error
from lithify.model.names import LogId, TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.engine import RewriteEngine, RunLimits
from lithify.ports.store import Warehouse
from lithify.reports.events import EventKind
from lithify.reports.rounds.round import LogReport
from lithify.rules.schedule.agenda import TopicWork
from lithify.rules.schedule.backoff import may_run
from lithify.service.group_reads import read_groups
from lithify.service.look.assessed_topic import assess_topic
from lithify.service.round.run import Run, run_rounds
from lithify.service.round.topic_run import TopicResult
from lithify.waits.parallel import for_each, parallel

Results = Mapping[TopicName, TopicResult | LithifyError]


@dataclass(frozen=True, slots=True)
class Rounds:
    """Does batches of rounds; several threads may use it at once."""

    warehouse: Warehouse
    engine: RewriteEngine
    leases: LeaseKeeper
    failures: Failures
    finder: WorkFinder
    reporter: EventReporter
    limits: RunLimits
    stop: Stop

    def do(self, batch: Sequence[TopicWork]) -> None:
        """Does the rounds of those logs of the batch that no other cleaner works on."""
        taken = self.leases.take([lease for work in batch for lease in work.leases(work.required.rounds)])
        ours = [part for work in batch if (part := _leased(work, taken)) is not None]
        try:
            states = self._still_due(ours)
            if states:
                self._run(states)
        finally:
            self.leases.release(taken)
            for work in ours:  # for the others the finding is valid until another cleaner commits
                self.finder.look_again(work.name)

    def _still_due(self, batch: Sequence[TopicWork]) -> dict[TopicName, tuple[TopicState, TopicWork]]:
        """The topics with a round still due: another cleaner may have done it since they were assessed.

        Settings of their streams count as they are now (C56).
        """
        try:
            streams = self.finder.inheritance.as_stored({work.name.stream for work in batch})
        except LithifyError:
            return {}  # the next look reports it
        due = parallel(partial(self._as_it_is, streams=streams), batch, self.warehouse.store.at_once)
        return {topic[1].name: topic for topic in due if topic is not None}

    def _as_it_is(self, work: TopicWork, streams: Stored) -> tuple[TopicState, TopicWork] | None:
        """A topic as it is now and the rounds that are due; None if there are none."""
        try:
            state = self.warehouse.store.load(work.name)
            if state.identity != work.identity:
                return None
            state = self.finder.inheritance.settled(state, streams)
            now_ms = self.warehouse.clock.now_ms()
            if state.version != work.version:
                reads = read_groups(self.warehouse, state)
                required = self.finder.required(assess_topic(self.warehouse.store, state, reads, now_ms), now_ms)
                required = required.only(work.required.rounds)
            else:  # another cleaner's round may have failed
                known = self.failures.of(state)
                tried = [p for p in work.required.rounds if may_run(known.get(p), now_ms)]
                required = replace(work.required.only(tried), has_failed=bool(known))
        except LithifyError:
            return None  # the next look finds and reports it
        except Exception as error:
            self.reporter.error(work.name, as_lithify_error(error, work.name))
            return None
        return (state, TopicWork(work.name, state.identity, state.version, required)) if required.rounds else None

    def _run(self, topics: dict[TopicName, tuple[TopicState, TopicWork]]) -> None:
        leases = [lease for _, work in topics.values() for lease in work.leases(work.required.rounds)]

        names, begun_ms = tuple(map(str, topics)), self.warehouse.clock.now_ms()
        begun = RoundProgress(leases[0], names, begun_ms)
        self.reporter.proceeded(begun)

        def progress(phase: str, done: int, total: int) -> None:
            self.reporter.proceeded(replace(begun, phase=phase, done=done, total=total))
            if self.stop.gives_up.is_set():
                raise RoundAbandonedError("the cleaner is stopping")
            if not all(map(self.leases.holds, leases)):
                raise RoundAbandonedError("the lease was lost", hint="another cleaner runs the round")

        run = Run(self.warehouse, self.engine, self.limits, None, progress)
        results: Results
        try:
            wanted = {name: work.required.rounds for name, (_, work) in topics.items()}
            results = run_rounds(run, wanted, {name: state for name, (state, _) in topics.items()})
        except Exception as error:  # a defect: these topics wait and are then tried alone
            results = dict.fromkeys(topics, as_lithify_error(error, "these rounds"))
        finally:
            self.reporter.proceeded(replace(begun, ended=True))
        for_each(lambda topic: self._note(*topic, results), topics.values(), self.warehouse.store.at_once)

    def _note(self, state: TopicState, work: TopicWork, results: Results) -> None:
        try:
            self._report(state, work, results)
        except Exception as error:  # the results of the other topics are still reported
            self.finder.back_off(work.name, as_lithify_error(error, work.name), self.warehouse.clock.now_ms())

    def _report(self, state: TopicState, work: TopicWork, results: Results) -> None:
        result = results[work.name]
        now_ms = self.warehouse.clock.now_ms()
        if isinstance(result, TopicResult):
            done = tuple(log for log in result.report.logs if log.error is None)
            through, errors = tuple(log.partition for log in done), result.errors
            self.failures.note_success(_means(done), now_ms)
        else:
            through, errors = (), dict.fromkeys(work.required.rounds, result)
        if through and work.required.has_failed:
            self.failures.forget(state, through)
        if isinstance(result, TopicResult) and through:
            self.reporter.round_done(work.name, result.report, work.required.overdue_ms)
            if not result.report.changed and not errors:
                self.finder.let_rest(work.name, map(state.log, work.required.rounds), now_ms)
        for partition, error in errors.items():
            self._report_failure(state, partition, error, now_ms)

    def _report_failure(self, state: TopicState, partition: int, error: LithifyError, now_ms: int) -> None:
        log = LogId(state.name, partition)
        if (isinstance(error, EngineError) or error.blames is Blame.ENGINE) and self.stop.asked.is_set():
            # A signal to the whole process group ends Spark too.
            error = RoundAbandonedError("the cleaner is stopping")
        match error:
            case RoundAbandonedError():
                self.reporter.left(EventKind.ABANDONED, log, error)
            case ConflictError():
                self.reporter.left(EventKind.CONFLICT, log, error)
            case _ if error.blames is Blame.NONE or self.failures.is_gone(state, error):
                pass  # deleted, or altered: the next look assesses it as it is
            case _:
                self.reporter.log_failed(log, error, self.failures.failed(state, partition, error, now_ms))


def _leased(work: TopicWork, taken: Collection[str]) -> TopicWork | None:
    """The rounds of those logs whose leases were taken."""
    return work.only([p for lease, p in work.leases(work.required.rounds).items() if lease in taken])


def _means(done: Iterable[LogReport]) -> Iterator[Blame]:
    """What these rounds show to work: the engine if one has read files, the store if one was committed."""
    if any(log.bytes_read for log in done):
        yield Blame.ENGINE
    if any(log.changed for log in done):
        yield Blame.STORE
