"""Deletes topics, for the CLI and the Python API alike. `service/creation.py` creates them."""

from __future__ import annotations

from lithify.model.names import TopicReference
from lithify.ports.store import Warehouse


def delete_topic(warehouse: Warehouse, reference: TopicReference) -> tuple[str, ...]:
    """Deletes a topic and its files, irreversibly; returns files of other programs in its folder, which it does not
    delete.

    Raises `UnknownTopicError`, `RefusedError`, or `ConflictError` if it was recreated meanwhile.
    """
    return warehouse.store.drop_topic(reference.whole("deleted"))
