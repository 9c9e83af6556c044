"""The state machine of the long random test: every verb of a topic in any order, with bad luck.

Each rule does something to a `CheckedTopic`, which knows what must come of it, and tells it in the
language of the scenarios. A verb may be paused at any of its port calls while others do theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lithify.model.message import Envelope, MessageId
from lithify.model.record import Record
from lithify.model.settings.topic_settings import settings_of, to_config
from lithify.service.documents import reports_of
from support.builders import WHOLE
from support.checked.following import Follower, Taken, Taker
from support.checked.places import PLACES
from support.checked.reading import (
    OpenReader,
    check_places,
    check_table,
    check_topic,
    check_verified,
    check_versions,
)
from support.checked.round import check_round
from support.checked.strategies import (
    BATCHES,
    CLOCK_MOVES_MS,
    CONFIG,
    GIVEN_MS,
    GRACE_MS,
    GROUPS,
    KIND,
    LOGS,
    LONG_MS,
    LOOKS,
    MOST_PARTITIONS,
    ORDER_HEADER,
    PARTITIONS,
    RECORDS,
    SETTING,
    SHARES,
    SIZES,
    TIMES_MS,
    TROUBLED,
    TROUBLES,
    Trouble,
)
from support.checked.sweep import check_expired, check_sweep
from support.checked.topic import CheckedTopic
from support.checked.trouble import Standstill
from support.checked.trouble import Trouble as Luck
from support.chunks import chunk_metadata
from support.faults.ports import Kind
from support.textbook.log import TextbookLog

MOST_READERS = 3
"""Readers of each kind that are open at a time."""
CALLS = {"compact": 14, "undo": 10, "truncate": 9, "sweep": 12, "expire": 4, "retain": 4}
"""About how many port calls a verb makes; the others make about 6."""


@dataclass(slots=True)
class Story:
    """The lines of a run, in the language of the scenarios; what has no word there is prose."""

    lines: list[str] = field(default_factory=list)

    def tell(self, *words: object) -> None:
        """One command."""
        self.lines.append(" ".join(["> " + str(words[0]), *(str(word) for word in words[1:] if word != "")]))

    def tell_records(self, verb: str, records: Sequence[Record]) -> None:
        """One command for each log: of the batches here, a scenario knows those to one log."""
        for partition in sorted({record.partition or 0 for record in records}):
            mine = [record for record in records if record.partition == partition]
            self.tell(verb, f"{partition}:", *map(_drawn, mine))

    def say(self, prose: str) -> None:
        self.lines.append(prose)

    @contextmanager
    def meanwhile(self, call: int, before: int) -> Iterator[None]:
        """Lines of this block come before line `before`: a scenario says first what others do meanwhile."""
        told = len(self.lines)
        try:
            yield
        finally:
            others = [line.replace("> ", f"> meanwhile, call {call}: ", 1) for line in self.lines[told:]]
            self.lines[told:] = []
            self.lines[before:before] = others


def _drawn(record: Record) -> str:
    key = WHOLE if record.passed_through else "·" if record.key is None else record.key.decode() or "''"
    value = "∅" if record.value is None else record.value.decode() or "''"
    place = "" if record.offset is None else f"@{record.offset}"
    header = f"#{int.from_bytes(record.headers[-1][1] or b'', 'big', signed=True)}" if record.headers else ""
    return f"{key}={value}{place}!{record.timestamp}{header}"


class RandomTopicMachine(RuleBasedStateMachine):
    """One topic on the place that a subclass names."""

    place_name = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.story = Story()
        self.tell = self.story.tell
        self.readers: list[OpenReader] = []
        self.followers: list[Follower] = []
        self.takers: list[Taker] = []
        self.ids = 0

    def teardown(self) -> None:
        """What Hypothesis prints of the smallest run that fails."""
        note("\n".join(["", f"a scenario on {self.place_name}:", *self.story.lines]))
        self.stack.close()

    @initialize(config=CONFIG, partitions=st.integers(1, 2))
    def create(self, config: dict[str, object], partitions: int) -> None:
        place = self.stack.enter_context(PLACES[self.place_name]())
        self.begun_ms = place.clock.now_ms()
        if config["compaction.mode"] == "side-by-side" and config["cleanup.policy"] == "delete":
            config["cleanup.policy"] = "compact,delete"
        if config["compaction.mode"] == "in-place":
            config["backlog.trim.groups"] = ""
        config = {"compaction.strategy.header": ORDER_HEADER, **config}
        config = {name: self._sized(name, value, place.size_unit) for name, value in config.items()}
        plain = to_config(settings_of({}))
        told = [f"{name}={value}" for name, value in config.items() if str(value) != plain[name]]
        self.tell("create", f"partitions={partitions}", *told)
        self.tell("at", f"{self.begun_ms}ms")
        self.topic = CheckedTopic.create(place, partitions, config)

    def _sized(self, name: str, value: object, unit: int) -> object:
        return value * unit if name in SIZES and isinstance(value, int) and value > 0 else value

    def _placed(self, records: Sequence[Record]) -> list[Record]:
        """With times of the clock, in partitions that there are, and with message ids where the topic has them."""
        there = len(self.topic.model.logs)
        placed = [
            r._replace(partition=(r.partition or 0) % there, timestamp=self.begun_ms + (r.timestamp or 0))
            for r in records
        ]
        if self.topic.model.settings.message_ids == "none":
            return placed
        return [self._enveloped(record) for record in placed]

    def _enveloped(self, record: Record) -> Record:
        """With the next id: five entries to a ledger, every other one a batch of three; some keyless pass through, most
        of them as chunks."""
        number, self.ids = self.ids, self.ids + 1
        entry, place = divmod(number, 4)
        message_id = MessageId(entry // 5, entry % 5 * 2 + (place > 0), place - 1)
        passed = record.key is None and number % 2 == 0
        event_time = number if number % 3 else None
        chunk = chunk_metadata((b"a", b"b")[number // 2 % 2]) if passed and number % 8 else None
        return record._replace(envelope=Envelope(message_id, event_time, chunk or b"p%d" % number, passed))

    def _luck(self, verb: str, trouble: Trouble) -> Luck:
        """What happens to a verb that is about to be told, at which of its port calls."""
        before = len(self.story.lines)
        match trouble:
            case "struck", float(share), Kind() as kind:
                at = self._call(verb, share)
                self.story.say(f"call {at} of the next one: {kind.value}")
                return at, kind
            case "paused", float(share), int(pause_ms), list(others):
                at = self._call(verb, share)
                return Standstill(at, lambda: self._others(at, before, pause_ms, others))
            case _:
                return None

    def _call(self, verb: str, share: float) -> int:
        return 1 + round(share * (CALLS.get(verb, 6) - 1))

    def _others(self, at: int, before: int, pause_ms: int, others: Sequence[tuple[str, *tuple[object, ...]]]) -> None:
        with self.story.meanwhile(at, before):
            if pause_ms:
                self.move_the_clock(pause_ms)
            for verb, *given in others:
                getattr(self, verb)(*given, None)

    @rule(records=RECORDS, trouble=TROUBLES)
    def append(self, records: Sequence[Record], trouble: Trouble) -> None:
        placed, luck = self._placed(records), self._luck("append", trouble)
        self.story.tell_records("append", placed)
        self.topic.append(placed, trouble=luck)

    @rule(records=RECORDS, further=BATCHES, trouble=TROUBLES)
    def append_a_batch(self, records: Sequence[Record], further: int, trouble: Trouble) -> None:
        placed, luck = self._placed(records), self._luck("append_a_batch", trouble)
        batch_id = max(0, self.topic.model.batch_id + further)
        self.story.say(f"as batch {batch_id} of a query:")
        self.story.tell_records("append", placed)
        self.topic.append_staged(placed, batch_id, luck)

    @rule(records=RECORDS, gap=st.sampled_from([0, 1, 5, -1]), trouble=TROUBLES)
    def append_with_offsets(self, records: Sequence[Record], gap: int, trouble: Trouble) -> None:
        ends = {log.partition: log.end + gap for log in self.topic.model.logs}
        placed = []
        for record in self._placed(records):
            assert record.partition is not None
            placed.append(record._replace(offset=ends[record.partition]))
            ends[record.partition] += 1
        if all(record.offset is not None and record.offset >= 0 for record in placed):
            luck = self._luck("keep", trouble)
            self.story.tell_records("keep", placed)
            self.topic.append(placed, keep_offsets=True, trouble=luck)

    @rule(partition=PARTITIONS, by=st.sampled_from([0, 1, 4, -1]), trouble=TROUBLES)
    def move_the_end(self, partition: int, by: int, trouble: Trouble) -> None:
        log, luck = self._log(partition), self._luck("end", trouble)
        self.tell("end", f"{log.partition}:", log.end + by)
        self.topic.move_end(log.partition, log.end + by, luck)

    def _log(self, partition: int) -> TextbookLog:
        return self.topic.model.logs[partition % len(self.topic.model.logs)]

    @rule(by_ms=CLOCK_MOVES_MS)
    def move_the_clock(self, by_ms: int) -> None:
        """What is appended after a long time is young again."""
        self.topic.place.clock.advance(by_ms)
        self.begun_ms += by_ms if by_ms > GRACE_MS else 0
        self.tell("at", f"{self.topic.place.clock.now_ms()}ms")

    @rule(by_ms=LONG_MS, moved=st.integers(0, 3))
    def let_time_pass(self, by_ms: int, moved: int) -> None:
        if not moved:
            self.move_the_clock(by_ms)

    @rule(logs=LOGS, given=GIVEN_MS, trouble=TROUBLED)
    def compact(self, logs: tuple[int, ...] | None, given: int | None, trouble: Trouble) -> None:
        luck, clock = self._luck("compact", trouble), self.topic.place.clock
        planned_ms = clock.now_ms() + (given or 0)
        now_ms = None if given is None else planned_ms
        asked = logs if len(self.topic.model.logs) > 1 else None
        told = ["" if now_ms is None else f"--now {now_ms}ms", "" if asked is None else f"--partition {asked[0]}"]
        self.tell("compact", *told)
        sealed = [log.sealed for log in self.topic.model.logs]
        if not check_round(self.topic, asked, now_ms, luck):
            return
        if all(was <= log.sealed for was, log in zip(sealed, self.topic.model.logs, strict=True)):  # C53
            self.check_again(asked, planned_ms)

    @rule(by_ms=CLOCK_MOVES_MS)
    def compact_later(self, by_ms: int) -> None:
        """A round of all logs without bad luck, so that rounds follow one another."""
        self.move_the_clock(by_ms)
        self.compact(None, None, None)

    def check_again(self, partitions: tuple[int, ...] | None, now_ms: int) -> None:
        """C41: the same H and now: no version, no report. What a round wrote may be past retention by then (C24)."""
        if self.topic.is_past_retention(now_ms) or self.topic.lags_less(now_ms):
            return
        store = self.topic.place.warehouse.store
        state, reports = self.topic.state, len(list(reports_of(store, self.topic.state)))
        check_round(self.topic, partitions, now_ms)
        assert self.topic.state == state, "a second round at the same time committed (C41)"
        assert len(list(reports_of(store, state))) == reports

    def _given(self, given: int | None) -> tuple[int | None, str]:
        now_ms = None if given is None else self.topic.place.clock.now_ms() + given
        return now_ms, "" if now_ms is None else f"--now {now_ms}ms"

    @rule(given=GIVEN_MS, trouble=TROUBLES)
    def retain(self, given: int | None, trouble: Trouble) -> None:
        luck, (now_ms, told) = self._luck("retain", trouble), self._given(given)
        self.tell("retain", told)
        self.topic.retain(now_ms, luck)

    @rule(group=GROUPS, partition=PARTITIONS, share=SHARES)
    def group_reads(self, group: str, partition: int, share: float, _: None = None) -> None:
        """To any offset, so that it also goes back."""
        log = self._log(partition)
        offset = min(log.end, round(log.start + share * (log.end - log.start + 1)))
        self.tell("position", f"{log.partition}:", group, offset)
        self.topic.group_reads(log.partition, group, offset)

    @rule(partition=PARTITIONS, share=SHARES, trouble=TROUBLES)
    def delete_records(self, partition: int, share: float, trouble: Trouble) -> None:
        log, luck = self._log(partition), self._luck("delete-records", trouble)
        before = round(-1 + share * (log.end + 2))
        self.tell("delete-records", f"{log.partition}:", before)
        self.topic.delete_records(log.partition, before, luck)

    @rule(partition=PARTITIONS, share=SHARES, below=st.booleans(), trouble=TROUBLES)
    def truncate(self, partition: int, share: float, below: bool, trouble: Trouble) -> None:
        log, luck = self._log(partition), self._luck("truncate", trouble)
        to = round(log.start - 1 + share * (log.end - log.start + 2))
        self.tell("truncate", f"{log.partition}:", "--below-compacted" if below else "", to)
        self.topic.truncate(log.partition, to, below_compacted=below, trouble=luck)

    @rule(setting=KIND)
    def alter_what_it_is(self, setting: tuple[str, object]) -> None:
        self.alter(setting, None)

    @rule(setting=SETTING, trouble=TROUBLES)
    def alter(self, setting: tuple[str, object], trouble: Trouble) -> None:
        name, value = setting[0], self._sized(*setting, self.topic.place.size_unit)
        luck = self._luck("alter", trouble)
        self.tell("alter", f"{name}={value}")
        self.topic.alter({name: value}, trouble=luck)

    @rule(by=st.sampled_from([1, 1, -1]), trouble=TROUBLES)
    def more_partitions(self, by: int, trouble: Trouble) -> None:
        wanted, luck = min(len(self.topic.model.logs) + by, MOST_PARTITIONS), self._luck("alter", trouble)
        self.tell("alter", f"--partitions {wanted}")
        self.topic.alter({}, wanted, luck)

    @rule(lose=st.booleans(), trouble=TROUBLES)
    def uncompact(self, lose: bool, trouble: Trouble) -> None:
        luck = self._luck("uncompact", trouble)
        self.tell("uncompact", "--lose-trimmed" if lose else "")
        self.topic.uncompact(lose_trimmed=lose, trouble=luck)

    @rule(trouble=TROUBLES)
    def undo(self, trouble: Trouble) -> None:
        luck = self._luck("undo", trouble)
        self.tell("undo")
        self.topic.undo(luck)

    @rule(trouble=TROUBLES)
    def sweep(self, trouble: Trouble) -> None:
        luck = self._luck("sweep", trouble)
        self.tell("sweep --yes")
        check_sweep(self.topic, luck)

    @rule(given=GIVEN_MS, trouble=TROUBLES)
    def expire(self, given: int | None, trouble: Trouble) -> None:
        luck, (now_ms, told) = self._luck("expire", trouble), self._given(given)
        self.tell("expire", told)
        check_expired(self.topic, now_ms, luck)

    @rule(what=LOOKS, partition=PARTITIONS, share=SHARES, at_ms=TIMES_MS, compacted=st.booleans())
    def read(self, what: str, partition: int, share: float, at_ms: int, compacted: bool) -> None:
        """One rule for all that changes nothing, so that most of a run does change something."""
        place = self._log(partition).partition
        match what:
            case "places":
                check_places(self.topic, place, share, self.begun_ms + at_ms)
            case "versions":
                check_versions(self.topic, share)
            case "table":
                check_table(self.topic)
            case "open a reader" if len(self.readers) < MOST_READERS:
                self.readers.append(OpenReader.open(self.topic, place, compacted=compacted))
            case "open a follower" if len(self.followers) < MOST_READERS:
                self.followers.append(Follower.open(self.topic, place, compacted=compacted))
            case "open a taker" if len(self.takers) < MOST_READERS:
                self.takers.append(Taker(self.topic, Taken(place, compacted)))
            case "read on":
                most = round(share * 3) if compacted else 1_000
                self.readers = [reader for reader in self.readers if not reader.read_on(most)]
            case "follow":
                self.followers = [follower for follower in self.followers if follower.poll()]
            case "take":
                most = round(share * 4) if compacted else 1_000
                self.takers = [taker for taker in self.takers if taker.take(most)]

    @invariant()
    def the_topic_is_what_the_textbook_says(self) -> None:
        if hasattr(self, "topic") and check_topic(self.topic):
            check_verified(self.topic)
