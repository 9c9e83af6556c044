"""The registry of one process: prometheus-client holds the counters, and gets the gauges at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from lithify.metrics.meter import Change, Sample, Source
from lithify.metrics.table import BY_NAME, DURATION_BUCKETS_S, METRICS, PREFIX, Group, Kind, Metric

OTHERS = "(others)"
"""The topic of what is counted beyond the topics that are labelled."""
TOPIC = "topic"


class TopicLabels:
    """The first topics up to a limit have a label of their own, so that a catalog of any size makes as many series."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.beyond: set[str] = set()
        """Bounded by the topics of the catalog, which looks keep in memory too."""
        self._labelled: set[str] = set()
        self._lock = Lock()

    def has(self, topic: str) -> bool:
        """Whether the topic has a label; the first call gives it one if there is room."""
        with self._lock:
            if topic in self._labelled:
                return True
            if len(self._labelled) < self.limit:
                self._labelled.add(topic)
                return True
            if self.limit:
                self.beyond.add(topic)
            return False


class Registry(Collector):
    """The `Meter` whose metrics are served: `render` returns them.

    `version` is Lithify's, `now_ms` returns epoch ms, and `topics` is how many get a label.
    """

    def __init__(self, version: str, now_ms: Callable[[], int], topics: int = 0) -> None:
        self._version, self._now_ms = version, now_ms
        self._labels = TopicLabels(topics)
        self._held: dict[str, Counter | Histogram] = {}
        self._sources: list[Source] = []
        self._lock = Lock()
        self._registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=self._registry)
        self._registry.register(self)
        self.begin(Group.PROCESS)
        self.watch(self._own)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """The metrics as they are now, and their content type, which a scraper's header `Accept` may choose."""
        encoder, content_type = choose_encoder(accept)
        return encoder(_WithoutTimes(self._registry)), content_type

    def now_ms(self) -> int:
        return self._now_ms()

    def begin(self, *groups: Group) -> None:
        with self._lock:
            for metric in METRICS:
                if metric.group in groups and metric.kind is not Kind.GAUGE and metric.name not in self._held:
                    self._held[metric.name] = self._made(metric)

    def count(self, changes: Iterable[Change]) -> None:
        for change in changes:
            metric, held = BY_NAME[change.name], self._held[change.name]
            labels = dict(change.labels)
            if self._is_by_topic(metric):
                labels[TOPIC] = change.topic if self._labels.has(change.topic) else OTHERS
            child = held.labels(**labels) if labels else held
            if isinstance(child, Histogram):
                child.observe(change.amount)
            else:
                child.inc(change.amount)

    def watch(self, source: Source) -> None:
        with self._lock:
            self._sources.append(source)

    def forget(self, source: Source) -> None:
        with self._lock:
            self._sources.remove(source)

    def collect(self) -> Iterator[Family]:
        """The gauges, for prometheus-client."""
        values: dict[str, dict[str | None, float]] = {}
        for sample in self._samples():
            known, joined = values.setdefault(sample.name, {}), BY_NAME[sample.name].joined
            value = float(sample.value)
            known[sample.topic] = joined(known[sample.topic], value) if sample.topic in known else value
        for metric in METRICS:
            if metric.name in values:
                family = GaugeMetricFamily(metric.name, _plain(metric.help), labels=metric.labels)
                for label, value in values[metric.name].items():
                    family.add_metric([] if label is None else [label], value)
                yield family

    def _samples(self) -> Iterator[Sample]:
        with self._lock:
            sources = list(self._sources)
        for source in sources:
            for sample in source():
                if BY_NAME[sample.name].labels != (TOPIC,) or self._labels.has(sample.topic or ""):
                    yield sample

    def _own(self) -> Iterator[Sample]:
        yield Sample(f"{PREFIX}build_info", 1, self._version)
        if self._labels.limit:
            yield Sample(f"{PREFIX}unlabelled_topics", len(self._labels.beyond))

    def _made(self, metric: Metric) -> Counter | Histogram:
        labels = (*metric.labels, TOPIC) if self._is_by_topic(metric) else metric.labels
        if metric.kind is Kind.HISTOGRAM:
            return Histogram(
                metric.name, _plain(metric.help), labels, registry=self._registry, buckets=DURATION_BUCKETS_S
            )
        return Counter(metric.name, _plain(metric.help), labels, registry=self._registry)

    def _is_by_topic(self, metric: Metric) -> bool:
        return metric.by_topic and self._labels.limit > 0


class _WithoutTimes(Collector):
    """A registry without the times at which series were made, which would be as many series once more."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Family]:
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


def _plain(text: str) -> str:
    return text.replace("`", "")
