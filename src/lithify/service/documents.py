"""The documents of topics as values: reports, rates, failures, sources, heartbeats.

No other module reads or writes them. Contents are checked, and an error about damage names the file (C48).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from lithify.errors import DamagedError
from lithify.errors.defects import readable
from lithify.model.failure import LogFailure, failures_from_json, failures_to_json
from lithify.model.formats.features import MASKS
from lithify.model.formats.warehouse import UNSTATED_FORMAT, WarehouseFormat, check_supported
from lithify.model.names import TopicName
from lithify.model.settings.rates import Rates, RatesDocument, RatesNote, cleaners_from_json
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.model.sources.ends import Ends, KnownEnds, ends_from_json, ends_to_json
from lithify.model.topic.state import TopicState
from lithify.ports.documents import DocumentKind, Documents
from lithify.ports.store import LogStore, Warehouse
from lithify.reports.rounds.rate_limits import RatesReport
from lithify.reports.rounds.round import RoundReport
from lithify.reports.rounds.stored_round import round_from_json, round_to_json


def put_report(store: Documents, topic: TopicState, report_id: str, report: RoundReport) -> None:
    """Stores a report, which counts once an edit that names it is committed. Raises `WarehouseError`."""
    store.put_document(topic, DocumentKind.REPORT, round_to_json(report), report_id)


def reports_of(store: LogStore, topic: TopicState) -> Iterator[RoundReport]:
    """Reports of committed rounds, newest first (C42). Raises what `report_ids` and `get_document` raise."""
    for report_id in store.report_ids(topic.name):
        content = store.get_document(topic, DocumentKind.REPORT, report_id)
        path = store.document_path(topic, DocumentKind.REPORT, report_id)
        if content is None:
            raise DamagedError(f"{path}: the file is missing", hint="restore it from a backup; nothing was changed")
        with readable(path):
            report = round_from_json(content)
        yield replace(report, topic=str(topic.name))  # earlier versions stored another form of the name


def put_rates(store: Documents, topic: TopicState | None, rates: RatesDocument) -> None:
    """Stores rates, which the running rounds of the topic, or without one of all cleaners, then keep to (C40).

    Raises `WarehouseError`, even if there is no warehouse yet.
    """
    store.put_document(topic, DocumentKind.RATES, rates.to_json())


def throttle(warehouse: Warehouse, name: TopicName | None, rates: Rates, *, shared: bool = False) -> RatesReport:
    """What `throttle` does: `put_rates`, with a new id; `shared` is for cleaners, and one bound for all of them.

    Raises `UnknownTopicError` or `WarehouseError`.
    """
    document = RatesDocument(warehouse.clock.new_id(), rates, shared if name is None else None)
    put_rates(warehouse.store, None if name is None else warehouse.store.load(name), document)
    return rates_report(name, document)


def rates_report(name: TopicName | None, document: RatesDocument) -> RatesReport:
    """Stored rates as `throttle` and `status` print them."""
    rates = document.rates
    return RatesReport(
        None if name is None else str(name),
        document.id,
        rates.read_rate_bytes,
        rates.write_rate_bytes,
        shared=bool(document.shared),
    )


def rates_of(store: Documents, topic: TopicState | None) -> RatesDocument | None:
    """The stored rates. Raises `WarehouseError`. A damaged document counts as none."""
    try:
        content = store.get_document(topic, DocumentKind.RATES)
        return None if content is None else RatesDocument.from_json(content)
    except (DamagedError, ValueError):
        return None


def rates_note(store: Documents, topic: TopicState | None) -> RatesNote:
    """The current rates: a round follows later ones, and the cleaners' rates that last. Raises `WarehouseError`."""
    document = rates_of(store, topic)
    known = None if document is None or document.lasts else document.id
    return cleaners_note(store, known) if topic is None else RatesNote(_rates_path(store, topic), known)


def cleaners_note(store: Documents, known: str | None) -> RatesNote:
    """Where the rates of cleaners are, as a cleaner follows them that knows those with this id."""
    return RatesNote(_rates_path(store, None), known, store.document_path(None, DocumentKind.CLEANERS))


def _rates_path(store: Documents, topic: TopicState | None) -> str:
    return store.document_path(topic, DocumentKind.RATES)


def put_cleaners(store: Documents, count: int) -> None:
    """Stores how many cleaners are running, unless that is what is stored. Raises `WarehouseError`."""
    with suppress(DamagedError, ValueError):
        content = store.get_document(None, DocumentKind.CLEANERS)
        if content is not None and cleaners_from_json(content) == count:
            return
    store.put_document(None, DocumentKind.CLEANERS, {"cleaners": count})


def put_failures(store: Documents, topic: TopicState, failures: Mapping[int, LogFailure]) -> None:
    """Stores, by partition, the logs whose last rounds failed, replacing the document. Raises `WarehouseError`."""
    store.put_document(topic, DocumentKind.FAILURES, failures_to_json(failures))


def failures_of(store: Documents, topic: TopicState) -> Mapping[int, LogFailure]:
    """By partition, the logs whose last rounds failed (C31). Raises `DamagedError` or `WarehouseError`."""
    try:
        content = store.get_document(topic, DocumentKind.FAILURES)
        return {} if content is None else failures_from_json(content)
    except (DamagedError, AttributeError, LookupError, TypeError, ValueError) as error:
        path = store.document_path(topic, DocumentKind.FAILURES)
        why = error.message.removeprefix(f"{path}: ") if isinstance(error, DamagedError) else repr(error)
        raise DamagedError(
            f"{path}: the file no longer lists the failing logs: {why}",
            hint="delete this file: it only lists failing and quarantined logs, which cleaners then retry",
        ) from error


def put_source(store: Documents, topic: TopicState, source: CopiedTopic) -> None:
    """Stores which topic of another system this one is a copy of. Raises `WarehouseError`."""
    store.put_document(topic, DocumentKind.SOURCE, source.to_json())


def source_of(store: Documents, topic: TopicState) -> CopiedTopic | None:
    """The topic of another system that this one is a copy of, if any. Raises `DamagedError` or `WarehouseError`."""
    content = store.get_document(topic, DocumentKind.SOURCE)
    if content is None:
        return None
    with readable(store.document_path(topic, DocumentKind.SOURCE)):
        copied = CopiedTopic.from_json(content)
    promoted = copied.promoted or store.get_document(topic, DocumentKind.PROMOTION) is not None
    return replace(copied, promoted=promoted)


def put_promotion(store: Documents, topic: TopicState) -> None:
    """Stores irreversibly that a copy was promoted, or is about to be. Raises `WarehouseError`."""
    store.put_document(topic, DocumentKind.PROMOTION, {"promoted": True})


def put_source_ends(store: Documents, topic: TopicState, known: Ends) -> None:
    """Stores what is known of the ends of its source's logs (C71). Raises `WarehouseError`."""
    store.put_document(topic, DocumentKind.SOURCE_ENDS, ends_to_json(known))


def source_ends_of(store: Documents, topic: TopicState) -> Mapping[int, KnownEnds]:
    """By partition, what is known of the ends of its source's logs (C71). Raises `DamagedError` or `WarehouseError`."""
    content = store.get_document(topic, DocumentKind.SOURCE_ENDS)
    if content is None:
        return {}
    with readable(store.document_path(topic, DocumentKind.SOURCE_ENDS)):
        return ends_from_json(content)


def put_warehouse_format(store: Documents, of: WarehouseFormat) -> None:
    """Stores what the warehouse can hold. Raises `WarehouseError`, even if there is no warehouse yet."""
    store.put_document(None, DocumentKind.FORMAT, of.to_json())


def warehouse_format(store: LogStore) -> WarehouseFormat:
    """What the warehouse can hold. Raises `UnsupportedFormatError`, `DamagedError` or `WarehouseError`."""
    content = store.get_document(None, DocumentKind.FORMAT)
    if content is None:
        return UNSTATED_FORMAT
    with readable(f"{store.where}: the format of the warehouse"):
        stated_format = WarehouseFormat.from_json(content)
    check_supported(store.where, stated_format)
    return stated_format


def may_have_masks(store: LogStore, topic: TopicState) -> bool:
    """Whether rounds of a topic may write masks: not in a warehouse that an earlier Lithify uses as well (C66).

    Raises what `warehouse_format` raises, which it asks of a topic without masks.
    """
    return MASKS in topic.features or MASKS in warehouse_format(store).features


def put_heartbeat(store: Documents, topic: TopicState, run_id: str) -> None:
    """Stores a heartbeat of a run, replacing its last one (C45). Raises `WarehouseError`."""
    store.put_document(topic, DocumentKind.HEARTBEAT, {"run": run_id}, run_id)
