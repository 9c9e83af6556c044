"""Copies of Kafka topics take only what an ingest copies, until they are promoted (C70).

A record appended to a copy would take the offset that Kafka gives to another record, which the next ingest would then
leave out. So a copy says of which topic it is one, and so does every commit that appends to it.
"""

from __future__ import annotations

from lithify.errors import PolicyError, RefusedError
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.replicas import check_own

PROMOTED = ""
"""What a copy that was promoted is a copy of."""


def check_takes_records(state: TopicState) -> None:
    """Raises `PolicyError` for a replica (C64) or a copy of a Kafka topic (C70): other programs fill them."""
    check_own(state)
    if state.copy_of:
        raise PolicyError(
            f"{state.name}: it is a copy of Kafka's {state.copy_of}, whose offsets are Kafka's",
            hint="produce to Kafka, and `lithify kafka ingest` copies it; or end the copy irreversibly with "
            f"`lithify kafka promote {state.name} --yes`; nothing was appended",
        )


def check_takes_partitions(state: TopicState) -> None:
    """Raises `PolicyError` for a replica (C64) or a copy of a Kafka topic, which has Kafka's partitions (C70)."""
    check_own(state)
    if state.copy_of:
        raise PolicyError(
            f"{state.name}: it is a copy of Kafka's {state.copy_of}, and has its partitions",
            hint="add them in Kafka, and the next ingest adds them here; nothing was changed",
        )


def check_appends(state: TopicState, edit: TopicEdit) -> None:
    """Raises `PolicyError` where `edit` appends to a copy of a Kafka topic what is not of that topic (C70)."""
    if edit.verb is Verb.APPEND and edit.copy_of is None:
        check_takes_records(state)


def check_ingested(state: TopicState, source: str, *, known: bool) -> None:
    """Raises `RefusedError` where no ingest of the Kafka topic `source` can go on in `state` (C70).

    `known`: its documents say that it is a copy of that topic. An earlier Lithify said it nowhere else.
    """
    if state.copy_of:
        if state.copy_of != source:
            raise another_source(state, "Kafka", state.copy_of, source)
    elif state.copy_of == PROMOTED:
        raise was_promoted(state)
    elif not known and any(log.log_end_offset for log in state.logs):
        raise RefusedError(
            f"{state.name}: it has records that no ingest has copied, at offsets that Kafka's {source} has too",
            hint="ingest into another topic, with --into",
        )


def check_still_copy(state: TopicState) -> None:
    """Raises `PolicyError` where the rest of a topic is not in Kafka any more, as it was promoted (C70)."""
    if state.copy_of == PROMOTED:
        raise PolicyError(_promoted(state), hint="read it without Kafka, or ingest into another topic")


def promoted(state: TopicState) -> str:
    """The Kafka topic that a topic is a copy of until it is promoted. Raises `PolicyError` for any other topic."""
    check_own(state)
    if not state.copy_of:
        why = _promoted(state) if state.copy_of == PROMOTED else f"{state.name}: it is no copy of a Kafka topic"
        raise PolicyError(why, hint="there is nothing to promote; nothing was changed")
    return state.copy_of


def was_promoted(state: TopicState) -> PolicyError:
    """The error for an ingest into a copy that was promoted."""
    return PolicyError(_promoted(state), hint="ingest into another topic, with --into")


def _promoted(state: TopicState) -> str:
    return f"{state.name}: it was promoted, and gives offsets of its own since then"


def another_source(state: TopicState, system: str, of: str, wanted: str) -> RefusedError:
    """The error for an ingest into a copy of another topic."""
    return RefusedError(
        f"{state.name} is a copy of {system}'s {of}, not of {wanted}", hint="ingest into another topic, with --into"
    )
