"""What a warehouse can hold, and which formats its topics have: `warehouse info` (C66)."""

from __future__ import annotations

from collections import Counter
from functools import partial

from lithify.errors import LithifyError, UnknownTopicError
from lithify.model.formats.warehouse import NEWEST_FORMAT
from lithify.model.names import TopicName
from lithify.ports.store import LogStore, Warehouse
from lithify.reports.warehouse import WarehouseInfo
from lithify.service.creation import format_now
from lithify.waits.parallel import parallel


def warehouse_info(warehouse: Warehouse) -> WarehouseInfo:
    """Reads the newest metadata of every topic. Raises `UnsupportedFormatError`, `DamagedError` or `WarehouseError`."""
    store = warehouse.store
    warehouse_format = format_now(store)
    formats: Counter[int] = Counter()
    unreadable: dict[str, str] = {}
    names = sorted(store.topics())
    for name, topic_format in zip(names, parallel(partial(_format_of, store), names, store.at_once), strict=True):
        if isinstance(topic_format, LithifyError):
            unreadable[str(name)] = str(topic_format)
        elif topic_format is not None:
            formats[topic_format] += 1
    return WarehouseInfo(
        warehouse=store.where,
        format=warehouse_format.version,
        features=tuple(sorted(warehouse_format.features)),
        newest_format=NEWEST_FORMAT.version,
        lacks=warehouse_format.lacking(NEWEST_FORMAT.features),
        topics=formats.total() + len(unreadable),
        topics_by_format={str(version): formats[version] for version in sorted(formats)},
        unreadable=unreadable,
    )


def _format_of(store: LogStore, name: TopicName) -> int | LithifyError | None:
    """None of a topic that was deleted meanwhile."""
    try:
        return store.load(name).format_version
    except UnknownTopicError:
        return None
    except LithifyError as error:
        return error
