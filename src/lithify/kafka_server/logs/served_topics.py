"""The topics of a lake as clients of Kafka see them, each in its newest version.

    look     all change tokens of the catalog, at most every `LOOK_MS`, for all who ask meanwhile
    topic    loaded if its token is another one, when a client asks for it or waits for a change of it

While clients wait for records, one thread looks for all of them. It reads only the topics that they wait for. In a
large catalog a look takes long. The next one waits for `PAUSE` times as long, so that looks take few per cent of a
processor. A client that knows more than the last look has one begin before, which takes half of a processor at most.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from lithify.errors import LithifyError, UnknownTopicError
from lithify.errors.defects import as_lithify_error
from lithify.kafka_server.logs.kafka_names import Clash, Listing, listed
from lithify.kafka_server.logs.parts import Parts
from lithify.kafka_server.logs.served_topic import ServedTopic
from lithify.kafka_server.logs.times import TimesOfSegments
from lithify.kafka_server.logs.version_files import Kept, VersionFiles
from lithify.kafka_server.logs.waiting import Unsubscribe, Waiting
from lithify.model.names import TopicName
from lithify.model.topic.state import TopicState
from lithify.ports.store import Warehouse
from lithify.service.look.assessed_topic import SharedTopics
from lithify.waits.parallel import for_each

LOOK_MS: Final = 200
PAUSE: Final = 20
"""Times as long as a look has taken."""
UNKNOWN_IDS_MS: Final = 5_000
"""Between two searches of all topics for an id that is not known."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A topic as it was loaded at a token, in a look; None: it does not exist."""

    token: str | None
    look: int
    topic: ServedTopic | LithifyError | None


@dataclass(frozen=True, slots=True)
class _Look:
    """What the catalog had at a look."""

    number: int = 0
    at_ms: int | None = None
    took_ms: int = 0
    tokens: Mapping[TopicName, str | None] = field(default_factory=dict)
    listing: Listing = Listing({})
    error: LithifyError | None = None

    def is_old(self, now_ms: int) -> bool:
        return self.at_ms is None or now_ms >= self.at_ms + max(LOOK_MS, PAUSE * self.took_ms)

    def rest_ms(self, now_ms: int) -> int:
        """Until the next one may begin: so looks take at most half of the time, however many clients ask."""
        return 0 if self.at_ms is None else max(0, self.at_ms + self.took_ms - now_ms)


class ServedTopics:
    """Several threads may use it. What asks the catalog blocks, and raises `WarehouseError` if that is not there."""

    def __init__(self, warehouse: Warehouse, shared: SharedTopics | None = None) -> None:
        """`shared` is what others in this process read of topics too."""
        self._shared = SharedTopics() if shared is None else shared
        self._store, self._clock, self._monotonic_ms = warehouse.store, warehouse.clock, warehouse.clock.monotonic_ms
        self._kept = Kept(Parts(warehouse.files, self._monotonic_ms), TimesOfSegments(warehouse.files))
        self._look = _Look()
        self._begun = 0
        """Looks so far."""
        self._looking = Lock()
        self._known: dict[TopicName, _Known] = {}
        self._names_by_id: dict[bytes, str] = {}
        """As clients name topics."""
        self._searched_ms: int | None = None
        self._loading: dict[TopicName, Lock] = {}
        self._lock = Lock()
        self._waiting = Waiting(self)

    def names(self) -> Mapping[str, TopicName]:
        """All names by which clients may ask for a topic, also of a view that it may not have."""
        return self._fresh().listing.nameable

    def listed(self) -> Mapping[str, TopicName]:
        """The topics that are told to clients which ask for all, by their names for them."""
        return self._fresh().listing.topics

    def clashes(self) -> tuple[Clash, ...]:
        """Topics that are not listed, since others have the same names for clients."""
        return self._fresh().listing.clashes

    @property
    def begun(self) -> int:
        """How many looks have begun so far."""
        return self._begun

    def topic(self, which: str | bytes, *, after: int = -1) -> ServedTopic | None:
        """The newest version of the topic with a name or an id; None if there is none.

        By a look that began when so many had begun already: for clients that know more of a log than the last look,
        by another gateway. All that ask with the same number share one. Raises the error of a topic that cannot be
        read.
        """
        look = self._fresh(after)
        if isinstance(which, str):
            return self._named(which, look)
        name = self._names_by_id.get(which)
        if name is None and self._search(look):
            name = self._names_by_id.get(which)
        topic = None if name is None else self._named(name, look)
        return topic if topic is not None and topic.topic_id == which else None

    def load(self, names: Iterable[str]) -> None:
        """Loads several topics at once, whose errors `topic` then raises."""
        look = self._fresh()
        wanted = [name for one in names if (name := look.listing.nameable.get(one)) is not None]
        self._load_all(wanted, look)

    def is_current(self, topic: ServedTopic) -> bool:
        """Whether no later version of a topic is known. Does not ask the catalog."""
        known = self._known.get(topic.name)
        return known is not None and isinstance(known.topic, ServedTopic) and known.topic.files is topic.files

    def subscribe(self, topics: Collection[ServedTopic], changed: Callable[[], None]) -> Unsubscribe:
        """Calls `changed` as soon as one of `topics` is not the newest version, is gone, or cannot be read.

        It is called once for each of them, by another thread; by this one, if it is known already. Returns what ends
        that.
        """
        return self._waiting.subscribe(topics, changed)

    def close(self) -> None:
        self._waiting.close()
        self._kept.parts.close()

    def look_for(self, names: Collection[TopicName]) -> None:
        """A look, after which the newest versions of these topics are known, or their errors."""
        try:
            look = self._fresh()
        except LithifyError:
            return  # those who wait are told by their next request
        self._load_all(names, look)
        self._kept.parts.close_idle()

    @property
    def pause_ms(self) -> int:
        """Between two looks for those who wait."""
        return max(LOOK_MS, PAUSE * self._look.took_ms)

    def _fresh(self, after: int = -1) -> _Look:
        """A look that is not old, and began after so many. Those who ask at the same time share it."""
        look = self._look
        if look.number <= after or look.is_old(self._monotonic_ms()):
            with self._looking:
                if self._look is look or self._look.number <= after:
                    self._clock.sleep(self._look.rest_ms(self._monotonic_ms()) / 1000)
                    self._begun += 1
                    self._look = self._looked(self._begun)
        if self._look.error is not None:
            raise self._look.error
        return self._look

    def _looked(self, number: int) -> _Look:
        begun_ms, before = self._monotonic_ms(), self._look
        try:
            tokens = dict(self._store.change_tokens())
        except Exception as error:
            now_ms = self._monotonic_ms()
            return _Look(number, now_ms, now_ms - begun_ms, error=as_lithify_error(error, "the list of topics"))
        listing = before.listing if tokens.keys() == before.tokens.keys() else listed(tokens)
        with self._lock:
            for name in self._known.keys() - tokens.keys():
                self._forget_ids(self._known.pop(name))
            for name in self._loading.keys() - tokens.keys():
                if not self._loading[name].locked():
                    del self._loading[name]
        self._shared.keep(tokens.keys())
        now_ms = self._monotonic_ms()
        return _Look(number, now_ms, now_ms - begun_ms, tokens, listing)

    def _search(self, look: _Look) -> bool:
        """Loads all topics, for one with an unknown id, unless that was done shortly before."""
        now_ms = self._monotonic_ms()
        with self._lock:
            if self._searched_ms is not None and now_ms < self._searched_ms + UNKNOWN_IDS_MS:
                return False
            self._searched_ms = now_ms
        self.load(look.listing.topics)
        return True

    def _load_all(self, names: Collection[TopicName], look: _Look) -> None:
        def load(name: TopicName) -> None:
            self._at(name, look)

        for_each(load, names, self._store.at_once)

    def _named(self, name: str, look: _Look) -> ServedTopic | None:
        topic_name = look.listing.nameable.get(name)
        topic = None if topic_name is None else self._loaded(topic_name, look)
        return topic.compacted() if topic is not None and look.listing.is_compacted(name) else topic

    def _loaded(self, name: TopicName, look: _Look) -> ServedTopic | None:
        topic = self._at(name, look).topic
        if isinstance(topic, LithifyError):
            raise topic
        return topic

    def _at(self, name: TopicName, look: _Look) -> _Known:
        """A topic at the token of a look, or at a later one."""
        if name not in look.tokens:
            return _Known(None, look.number, None)
        if (known := self._known_at(name, look)) is not None:
            return known
        with self._lock:
            loading = self._loading.setdefault(name, Lock())
        with loading:
            if (known := self._known_at(name, look)) is not None:
                return known
            return self._load(name, look)

    def _known_at(self, name: TopicName, look: _Look) -> _Known | None:
        known, token = self._known.get(name), look.tokens.get(name)
        if known is None:
            return None
        is_same = token is not None and known.token == token
        return known if is_same or known.look >= look.number else None

    def _load(self, name: TopicName, look: _Look) -> _Known:
        token = look.tokens.get(name)
        topic: ServedTopic | LithifyError | None
        try:
            topic = self._served(self._shared.state(self._store, name, token))
        except UnknownTopicError:
            topic = None
        except Exception as error:
            topic = as_lithify_error(error, name)
        known = _Known(token, look.number, topic)
        with self._lock:
            before = self._known.get(name)
            if before is not None and not isinstance(topic, LithifyError):  # else who asks by id gets the error
                self._forget_ids(before)
            self._known[name] = known
            self._names_by_id |= {one.topic_id: one.kafka_name for one in _forms(known)}
        self._waiting.tell(name)
        return known

    def _forget_ids(self, known: _Known) -> None:
        for one in _forms(known):
            self._names_by_id.pop(one.topic_id, None)

    def _served(self, state: TopicState) -> ServedTopic:
        before = self._known.get(state.name)
        topic = None if before is None else before.topic
        if isinstance(topic, ServedTopic) and topic.state == state:
            return topic
        files = VersionFiles(self._store, state, self._kept, lambda: self._is_replaced(state))
        if isinstance(topic, ServedTopic):
            files.continue_from(topic.files)
        return ServedTopic.of(state, files)

    def _is_replaced(self, state: TopicState) -> bool:
        """Whether a version is not the newest any more, by the catalog; then it is not served any more."""
        before = self._known.get(state.name)
        if before is not None and isinstance(before.topic, ServedTopic) and before.topic.state.version > state.version:
            return True
        with self._lock:
            loading = self._loading.setdefault(state.name, Lock())
        with loading:
            known = self._load(state.name, _Look(self._look.number))
        return not isinstance(known.topic, ServedTopic) or known.topic.state != state


def _forms(known: _Known) -> tuple[ServedTopic, ...]:
    """The topic as it is, and as compacted, where clients may ask for that."""
    topic = known.topic
    if not isinstance(topic, ServedTopic):
        return ()
    compacted = topic.compacted()
    return (topic,) if compacted is None else (topic, compacted)
