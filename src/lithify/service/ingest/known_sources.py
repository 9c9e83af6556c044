"""Whether topics of the lake can be copies of topics of another system, before an ingest begins and during it (C70)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from lithify.errors import LithifyError, RefusedError, UnknownTopicError
from lithify.model.names import parse_topic
from lithify.model.sources.copied_topic import CopiedTopic
from lithify.model.sources.origin import PROMOTED, CopyOf
from lithify.model.sources.source import IngestRequest, SourceTopic
from lithify.model.topic.state import TopicState
from lithify.ports.store import LogStore
from lithify.rules.lifecycle.copies.ownership import another_source, check_ingested, was_promoted
from lithify.rules.lifecycle.replicas import check_own
from lithify.service.documents import put_source, source_of


def known_source(store: LogStore, state: TopicState, source: CopyOf) -> CopiedTopic | None:
    """What is stored of the source of a copy. Raises `RefusedError` if that is not `source`, or was promoted."""
    copied = source_of(store, state)
    if copied is not None and copied.name != source.topic:
        raise another_source(state, replace(source, topic=copied.name), source.topic)
    if copied is not None and copied.promoted:
        raise was_promoted(state)
    return copied


def check_cluster(state: TopicState, copied: CopiedTopic, found: SourceTopic) -> None:
    """Raises `RefusedError` for a topic of another cluster. Where ids of topics are known, they alone are compared:
    a topic may move to another cluster with its id, and has another id wherever it is another topic.
    """
    is_same = bool(found.topic_id) and found.topic_id == copied.topic_id
    if not is_same and found.cluster_id and copied.cluster_id not in ("", found.cluster_id):
        raise RefusedError(
            f"{state.name}: it is a copy of {copied.name} in the cluster {copied.cluster_id}, and this one is in the "
            f"cluster {found.cluster_id}",
            hint="ingest into another topic, with --into",
        )


def remember(store: LogStore, state: TopicState, known: CopiedTopic | None, copied: CopiedTopic) -> None:
    """Stores what is new of the source of a copy; what the source did not tell this time remains as it is `known`.

    Raises `PolicyError` if the copy was promoted meanwhile, whose note this may have overwritten: it is there again.
    """
    if known is not None:
        config = known.config if copied.config is None else copied.config
        topic_id, cluster_id = copied.topic_id or known.topic_id, copied.cluster_id or known.cluster_id
        copied = replace(copied, topic_id=topic_id, cluster_id=cluster_id, config=config)
    if known != copied:
        put_source(store, state, copied)
        if store.load(state.name).origin == PROMOTED:
            put_source(store, state, replace(copied, promoted=True))
            raise was_promoted(state)


def check_one_can_begin(store: LogStore, system: str, request: IngestRequest) -> None:
    """Raises the first `RefusedError` if every topic of `system` that is named would be refused."""
    refused: list[RefusedError] = []
    for topic in request.topics:
        try:
            _check_can_begin(store, CopyOf(system, topic), request.target(topic))
        except RefusedError as error:
            refused.append(error)
        except LithifyError as error:
            if not (request.continuous and error.is_outage):
                raise
            return  # the ingest waits for it
        else:
            return
    if refused:
        raise refused[0]


def _check_can_begin(store: LogStore, source: CopyOf, into: str) -> None:
    with suppress(UnknownTopicError):
        state = store.load(parse_topic(into).whole("copied into"))
        check_own(state)
        check_ingested(state, source, known=known_source(store, state, source) is not None)
