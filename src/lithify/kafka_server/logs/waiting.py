"""Those who wait for a later version of a topic, and the thread that looks for them while there are any."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import count
from threading import Condition, Thread
from typing import Final, Protocol

from lithify.kafka_server.logs.served_topic import ServedTopic
from lithify.model.names import TopicName

Unsubscribe = Callable[[], None]
CLOSE_S: Final = 5.0
"""For a look under way: the thread ends with the process in any case."""


class Looks(Protocol):
    """What looks for them."""

    @property
    def pause_ms(self) -> int: ...
    def look_for(self, names: Collection[TopicName]) -> None: ...
    def is_current(self, topic: ServedTopic) -> bool: ...


class Waiting:
    """Several threads may use it."""

    def __init__(self, looks: Looks) -> None:
        self._looks = looks
        self._waiters: dict[TopicName, dict[ServedTopic, dict[int, Callable[[], None]]]] = {}
        """By topic, and by the version after which they wait for another one."""
        self._numbers = count()
        self._condition = Condition()
        self._thread: Thread | None = None
        self._is_closed = False

    def subscribe(self, topics: Collection[ServedTopic], changed: Callable[[], None]) -> Unsubscribe:
        number = next(self._numbers)
        with self._condition:
            for topic in topics:
                self._waiters.setdefault(topic.name, {}).setdefault(topic, {})[number] = changed
            if self._thread is None and not self._is_closed:
                self._thread = Thread(target=self._look, name="lithify-kafka-looks", daemon=True)
                self._thread.start()
        for topic in topics:
            if not self._looks.is_current(topic):
                self.tell(topic.name)
        return lambda: self._unsubscribe(topics, number)

    def tell(self, name: TopicName) -> None:
        """Calls those who wait for a topic whose newest known version is another than theirs."""
        with self._condition:
            versions = self._waiters.get(name, {})
            old = [topic for topic in versions if not self._looks.is_current(topic)]
            calls = [call for topic in old for call in versions.pop(topic).values()]
            if not versions:
                self._waiters.pop(name, None)
        for call in calls:
            with suppress(RuntimeError):  # of an event loop that was closed meanwhile
                call()

    def close(self) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(CLOSE_S)

    def _unsubscribe(self, topics: Collection[ServedTopic], number: int) -> None:
        with self._condition:
            for topic in topics:
                versions = self._waiters.get(topic.name, {})
                waiters = versions.get(topic, {})
                waiters.pop(number, None)
                if not waiters:
                    versions.pop(topic, None)
                if not versions:
                    self._waiters.pop(topic.name, None)

    def _look(self) -> None:
        while True:
            with self._condition:
                self._condition.wait(self._looks.pause_ms / 1000)
                names = [*self._waiters]
                if self._is_closed or not names:
                    self._thread = None
                    return
            self._looks.look_for(names)
            for name in names:
                self.tell(name)
