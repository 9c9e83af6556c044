"""Creates and deletes topics, for the CLI, the Python API and ingests alike."""

from __future__ import annotations

from lithify.lifecycle.admission import check_partitions
from lithify.model.log import TopicState
from lithify.model.names import TopicReference, check_printable
from lithify.model.settings.topic_settings import TopicSettings
from lithify.ports.store import Warehouse


def create_topic(
    warehouse: Warehouse, reference: TopicReference, settings: TopicSettings, partitions: int
) -> TopicState:
    """Creates a topic. Raises `TopicExistsError`, `InvalidNameError`, `RefusedError` or `WarehouseError`."""
    check_printable(reference)
    check_partitions(partitions)
    now_ms = warehouse.clock.now_ms()
    return warehouse.store.create_topic(reference.whole("created"), reference.original, settings, partitions, now_ms)


def delete_topic(warehouse: Warehouse, reference: TopicReference) -> tuple[str, ...]:
    """Deletes a topic and its files, irreversibly; returns files of other programs in its folder, which stay.

    Raises `UnknownTopicError`, `RefusedError`, or `ConflictError` if it was recreated meanwhile.
    """
    return warehouse.store.drop_topic(reference.whole("deleted"))
