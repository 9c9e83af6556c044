"""Copies take only what an ingest copies, until they are promoted (C70).

A record appended to a copy would take the offset that the other system gives to another record, which the next ingest
would then leave out. So a copy says of which topic it is one, and so does every commit that appends to it.
"""

from __future__ import annotations

from lithify.errors import PolicyError, RefusedError
from lithify.model.sources.origin import OWN, CopyOf, Own, Promoted
from lithify.model.topic.edit import TopicEdit, Verb
from lithify.model.topic.state import TopicState
from lithify.rules.lifecycle.replicas import check_own


def check_takes_records(state: TopicState) -> None:
    """Raises `PolicyError` for a replica (C64) or a copy of another system's topic (C70): other programs fill them."""
    check_own(state)
    if isinstance(of := state.origin, CopyOf):
        raise PolicyError(
            f"{state.name}: it is a copy of {of} with the offsets of {of.system}",
            hint=f"produce to {of.system}, from where `lithify kafka ingest` copies the records, or end the copy "
            "irreversibly with "
            f"`lithify kafka promote {state.name} --yes`; nothing was appended",
        )


def check_takes_partitions(state: TopicState) -> None:
    """Raises `PolicyError` for a replica (C64) or a copy, which has the partitions of its source (C70)."""
    check_own(state)
    if isinstance(of := state.origin, CopyOf):
        raise PolicyError(
            f"{state.name}: it is a copy of {of} and has the same partitions",
            hint=f"add partitions in {of.system}: the next ingest adds them here; nothing was changed",
        )


def check_appends(state: TopicState, edit: TopicEdit) -> None:
    """Raises `PolicyError` if `edit` appends to a copy what is not of its source (C70)."""
    if edit.verb is Verb.APPEND and edit.origin in (None, OWN):
        check_takes_records(state)


def check_ingested(state: TopicState, source: CopyOf, *, known: bool) -> None:
    """Raises `RefusedError` if no ingest of `source` can continue in `state` (C70).

    `known`: its documents say that it is a copy of that topic. An earlier Lithify said it nowhere else.
    """
    match state.origin:
        case CopyOf() as of if of != source:
            raise another_source(state, of, source.topic)
        case Promoted():
            raise was_promoted(state)
        case Own() if not known and any(log.log_end_offset for log in state.logs):
            raise RefusedError(
                f"{state.name}: it has records that no ingest has copied, at offsets that {source} also has",
                hint="ingest into another topic, with --into",
            )


def check_still_copy(state: TopicState) -> None:
    """Raises `PolicyError` if the rest of a topic is not in its source any more, as it was promoted (C70)."""
    if isinstance(state.origin, Promoted):
        raise PolicyError(_promoted(state), hint="read it without Kafka, or ingest into another topic")


def promoted(state: TopicState) -> CopyOf:
    """What a topic is a copy of until it is promoted. Raises `PolicyError` for any other topic."""
    check_own(state)
    match state.origin:
        case CopyOf() as of:
            return of
        case Promoted():
            why = _promoted(state)
        case Own():
            why = f"{state.name}: it is not a copy of a Kafka topic"
    raise PolicyError(why, hint="there is nothing to promote; nothing was changed")


def was_promoted(state: TopicState) -> PolicyError:
    """The error for an ingest into a copy that was promoted."""
    return PolicyError(_promoted(state), hint="ingest into another topic, with --into")


def _promoted(state: TopicState) -> str:
    return f"{state.name}: it was promoted and has assigned its own offsets since then"


def another_source(state: TopicState, of: CopyOf, wanted: str) -> RefusedError:
    """The error for an ingest into a copy of another topic."""
    why = f"{state.name} is a copy of {of}, not of {wanted}"
    return RefusedError(why, hint="ingest into another topic, with --into")
