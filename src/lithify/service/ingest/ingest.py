"""Copies topics of another system into the lake, and continues where the copies end (C1, C6).

    source: topics, ids, offsets ─► where each copy continues ─► a stream each ─► commits
                                 └─► an error: that topic alone stops

The copy has the source's partitions, offsets, timestamps, keys, values and headers. Its log ends alone say
how far it has got; no other progress is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from lithify.errors import BrokerError, LithifyError, RefusedError, UnknownSourceError
from lithify.model.names import TopicName, parse_topic
from lithify.model.sources.source import IngestRequest, check_apart
from lithify.ports.source import Source, StopAsked
from lithify.ports.store import Warehouse
from lithify.reports.ingest import IngestReport, TellBatch, TellNote
from lithify.service.ingest.narration import Narration
from lithify.service.ingest.streams import CopyStreams
from lithify.service.ingest.topic_ingest import TopicIngest

LOOK_S = 0.2
"""Between two checks whether the streams are still active."""


def ingest(
    warehouse: Warehouse,
    source: Source,
    request: IngestRequest,
    tell: TellBatch,
    stops: Callable[[], bool],
    notes: TellNote = lambda _note: None,
) -> tuple[IngestReport, ...]:
    """Copies the current records of topics, or with `continuous` all new ones until `stops` returns true.

    A topic that fails has its error in its report; the others continue. Raises `BrokerError` or
    `ConnectorError` if no copy can start.
    """
    narration = Narration(source, request, warehouse.clock, notes)
    copies = _Copies(warehouse, source, request, tell, narration)
    try:
        while request.continuous and source.is_silent and not stops():
            warehouse.clock.sleep(LOOK_S)
            narration.look()
        topics = request.topics if request.pattern is None else source.topics(request.pattern)
        if not topics:
            raise UnknownSourceError(f"{source.where} has no topic that matches {request.pattern}")
        if not request.into_stream and len(topics) > 1:
            what = f"{len(topics)} topics cannot be copied into one topic, {request.into}"
            raise RefusedError(what, hint="pass a stream to --into, such as shop/")
        copies.begin(topics)
        while copies.go_on and not stops():
            warehouse.clock.sleep(LOOK_S)
            if stops():  # Spark may be about to end by the same signal
                break
            narration.look()
            copies.look()
            copies.look_for_new()
    except StopAsked:
        pass
    finally:
        reports = copies.end(stopped=stops())
    return reports


class _Copies:
    """The copies of one ingest, and the reports of those that could not start."""

    def __init__(
        self, warehouse: Warehouse, source: Source, request: IngestRequest, tell: TellBatch, narration: Narration
    ) -> None:
        self._warehouse, self._source = warehouse, source
        self._request, self._tell, self._narration = request, tell, narration
        self._streams: list[CopyStreams] = []
        self._reports: list[IngestReport] = []
        self._known: set[str] = set()
        self._told: set[str] = set()
        """Topics that have failed while others continued, and were reported."""
        self._looked_ms = warehouse.clock.monotonic_ms()

    @property
    def go_on(self) -> bool:
        return any(streams.goes_on for streams in self._streams)

    def begin(self, topics: Sequence[str]) -> None:
        """Starts a copy of each topic. Raises what `_targets` raises."""
        clock = self._warehouse.clock
        self._known.update(topics)
        for topic, name in self._targets(topics).items():
            copy = TopicIngest(
                self._warehouse, self._source, self._request, topic, name, self._tell, self._narration, clock.now_ms()
            )
            streams = CopyStreams(copy, self._source, clock, self._request.continuous)
            streams.begin()
            self._streams.append(streams)  # not one that was stopped before it began

    def look(self) -> None:
        """Checks all streams; reports each topic that has failed, once, if others continue."""
        for streams in self._streams:
            streams.look()
        if not self.go_on:
            return
        ended = (streams.report(stopped=False) for streams in self._streams if not streams.goes_on)
        for report in (*self._reports, *ended):
            if report.error is not None and report.source not in self._told:
                self._told.add(report.source)
                self._narration.failed(report)

    def look_for_new(self) -> None:
        """Starts copies of new topics that match, looked for as often as the source's own clients do."""
        pattern, now_ms = self._request.pattern, self._warehouse.clock.monotonic_ms()
        if pattern is None or not self._request.continuous:
            return
        if now_ms - self._looked_ms < self._source.look_interval_ms or self._source.is_silent:
            return  # waited for here, its silence would not be told
        self._looked_ms = now_ms
        topics: Sequence[str] = ()
        with suppress(BrokerError):  # the next look may succeed; streams handle the outage themselves
            topics = self._source.topics(pattern)
        self.begin([topic for topic in topics if topic not in self._known])

    def _targets(self, topics: Sequence[str]) -> dict[str, TopicName]:
        """By topic of the source, the one that it is copied into.

        Of topics that a pattern matches, one that no topic can be a copy of ends with its error (C50). Raises
        `RefusedError` or `InvalidNameError` for one that was named.
        """
        targets: dict[str, TopicName] = {}
        for topic in topics:
            into = self._request.target(topic)
            try:
                targets[topic] = parse_topic(into).whole("copied into" if self._request.into else "copied")
            except LithifyError as error:
                if self._request.pattern is None:
                    raise
                self._reports.append(IngestReport(into, topic, 0, 0, 0).failed(error, refused=True))
        check_apart(targets)
        return targets

    def end(self, *, stopped: bool) -> tuple[IngestReport, ...]:
        """Stops all streams; returns the reports of all topics."""
        if self._streams:
            with ThreadPoolExecutor(len(self._streams)) as pool:
                list(pool.map(lambda streams: streams.stop(), self._streams))
        return (*self._reports, *(streams.report(stopped=stopped) for streams in self._streams))
