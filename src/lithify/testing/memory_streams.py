"""The streams of the memory store: which there are, and their attributes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from threading import Lock

from lithify.model.names import TopicName
from lithify.store.errors import stream_exists, stream_not_empty, unknown_stream


class MemoryStreams:
    """`Streams` in memory, over the topics of the store. One lock guards both."""

    _topics: Mapping[TopicName, object]

    def __init__(self) -> None:
        self._lock = Lock()
        self._edits = Lock()
        self._streams: dict[str, dict[str, str]] = {}

    def create_stream(self, stream: str, attributes: Mapping[str, str]) -> None:
        """Raises `RefusedError`."""
        with self._lock:
            if stream in self._known_streams():
                raise stream_exists(stream)
            self._streams[stream] = dict(attributes)

    def streams(self) -> tuple[str, ...]:
        with self._lock:
            return self._known_streams()

    def stream_attributes(self, streams: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        with self._lock:
            return {stream: dict(self._streams[stream]) for stream in streams if stream in self._streams}

    def stream_topics(self, stream: str) -> tuple[TopicName, ...]:
        """Raises `UnknownStreamError`."""
        with self._lock:
            self._check_stream(stream)
            return tuple(sorted(name for name in self._topics if name.stream == stream))

    def change_stream(self, stream: str, attributes: Mapping[str, str], remove: Collection[str]) -> None:
        """Raises `UnknownStreamError`."""
        with self._lock:
            self._check_stream(stream)
            kept = {name: text for name, text in self._streams.get(stream, {}).items() if name not in remove}
            self._streams[stream] = kept | dict(attributes)

    def edit_lock(self, stream: str) -> AbstractContextManager[object]:
        return self._edits

    def drop_stream(self, stream: str) -> None:
        """Raises `UnknownStreamError`, or `RefusedError` while it has topics."""
        with self._lock:
            self._check_stream(stream)
            if any(name.stream == stream for name in self._topics):
                raise stream_not_empty(stream)
            del self._streams[stream]

    def _known_streams(self) -> tuple[str, ...]:
        return tuple(sorted({*self._streams, *(name.stream for name in self._topics)}))

    def _check_stream(self, stream: str) -> None:
        known = self._known_streams()
        if stream not in known:
            raise unknown_stream(stream, known)
