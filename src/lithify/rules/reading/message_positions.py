"""Topics with Pulsar's message ids: which ones they are, and the positions of their records (PIP-429)."""

from __future__ import annotations

from lithify.errors import RefusedError
from lithify.model.message import MessagePosition
from lithify.model.record import Record
from lithify.model.topic.state import TopicState


def check_has_ids(state: TopicState) -> None:
    """Raises `RefusedError` for a topic whose records have no message ids."""
    if state.settings.message_ids == "none":
        raise RefusedError(
            f"{state.name}: its records have no message ids",
            hint="use offsets: only topics copied with `lithify pulsar ingest` have message ids",
        )


def message_position(record: Record) -> MessagePosition:
    """The position of a stored record that has a message id."""
    assert record.envelope is not None and record.timestamp is not None
    return MessagePosition(*record.envelope.id, record.timestamp)
