"""The Python API of one stream: its attributes, which topics inherit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lithify.api.topic import Topic
from lithify.model.names import original_stream
from lithify.ports.store import Warehouse
from lithify.reports.streams import StreamDeleteReport, StreamEditReport, StreamInfo
from lithify.service.change.streams import delete_stream, edit_stream
from lithify.service.look.streams import stream_info


@dataclass(frozen=True, slots=True)
class Stream:
    """A namespace of topics, with attributes that they inherit (C56)."""

    warehouse: Warehouse
    namespace: str
    """Its name as it is stored."""

    @property
    def name(self) -> str:
        """As MapR or Pulsar writes it, if it is one of theirs."""
        return original_stream(self.namespace)

    def info(self) -> StreamInfo:
        """Every attribute with its value and where it comes from, and the number of topics."""
        return stream_info(self.warehouse, self.namespace)

    def topics(self) -> tuple[Topic, ...]:
        """Its topics by name."""
        return tuple(Topic(self.warehouse, name) for name in self.warehouse.store.stream_topics(self.namespace))

    def edit(self, config: Mapping[str, object] | None = None, *, unset: Sequence[str] = ()) -> StreamEditReport:
        """Sets and unsets attributes, then alters every topic that inherits other settings by it (C43).

        A topic that fails has its `error` in the report, and `report.failed` lists such topics; a repetition
        tries them again. Raises `InvalidSettingError`, with nothing changed.
        """
        return edit_stream(self.warehouse, self.namespace, config or {}, unset)

    def delete(self, *, topics: bool = False) -> StreamDeleteReport:
        """Deletes the stream, and with `topics` its topics irreversibly. Raises `RefusedError` if it has any."""
        return delete_stream(self.warehouse, self.namespace, with_topics=topics)
