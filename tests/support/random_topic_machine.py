"""The state machine of the long random test: every verb of a topic in any order, with bad luck.

Each rule does something to a `CheckedTopic`, which knows what must come of it, and tells it in the
language of the scenarios. What has no word there is told in a line of prose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lithify.model.record import Record
from lithify.model.settings import settings_of, to_config
from support.checked_reading import (
    Follower,
    OpenReader,
    check_places,
    check_sweep,
    check_table,
    check_topic,
    check_versions,
)
from support.checked_round import check_round
from support.checked_topic import CheckedTopic, Strike
from support.random_places import PLACES
from support.random_strategies import (
    CLOCK_MOVES_MS,
    CONFIG,
    GIVEN_MS,
    KIND,
    LOOKS,
    MOST_PARTITIONS,
    PARTITIONS,
    RACES,
    RECORDS,
    SETTING,
    SHARES,
    SIZES,
    STRIKES,
    TIMES_MS,
    VERSION_HEADER,
)

MOST_READERS = 3
"""Readers of each kind that are open at a time."""


class RandomTopicMachine(RuleBasedStateMachine):
    """One topic on the place that a subclass names."""

    place_name = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.lines: list[str] = []
        self.readers: list[OpenReader] = []
        self.followers: list[Follower] = []

    def teardown(self) -> None:
        """What Hypothesis prints of the smallest run that fails."""
        note("\n".join(["", f"a scenario on {self.place_name}:", *self.lines]))
        self.stack.close()

    @initialize(config=CONFIG, partitions=st.integers(1, 2))
    def create(self, config: dict[str, object], partitions: int) -> None:
        place = self.stack.enter_context(PLACES[self.place_name]())
        self.begun_ms = place.clock.now_ms()
        if config["compaction.mode"] == "side-by-side" and config["cleanup.policy"] == "delete":
            config["cleanup.policy"] = "compact,delete"
        config = {"compaction.strategy.header": VERSION_HEADER, **config}
        config = {name: self._sized(name, value, place.size_unit) for name, value in config.items()}
        plain = to_config(settings_of({}))
        told = [f"{name}={value}" for name, value in config.items() if str(value) != plain[name]]
        self.tell("create", f"partitions={partitions}", *told)
        self.tell("at", f"{self.begun_ms}ms")
        self.topic = CheckedTopic.create(place, partitions, config)

    def tell(self, *words: object, strike: Strike = None) -> None:
        """One command of the scenario; what strikes it is told in prose, as a scenario has no word for it."""
        if strike is not None:
            self.lines.append(f"call {strike[0]} of the next one: {strike[1].value}")
        self.lines.append(" ".join(["> " + str(words[0]), *(str(word) for word in words[1:] if word != "")]))

    def _sized(self, name: str, value: object, unit: int) -> object:
        return value * unit if name in SIZES and isinstance(value, int) and value > 0 else value

    def _placed(self, records: Sequence[Record]) -> list[Record]:
        """With times of the clock, in partitions that there are."""
        there = len(self.topic.model.logs)
        return [
            r._replace(partition=(r.partition or 0) % there, timestamp=self.begun_ms + (r.timestamp or 0))
            for r in records
        ]

    @rule(records=RECORDS, strike=STRIKES)
    def append(self, records: Sequence[Record], strike: Strike) -> None:
        placed = self._placed(records)
        self.tell_records("append", placed, strike)
        self.topic.append(placed, strike=strike)

    @rule(records=RECORDS, gap=st.sampled_from([0, 1, 5, -1]), strike=STRIKES)
    def append_with_offsets(self, records: Sequence[Record], gap: int, strike: Strike) -> None:
        ends = {log.partition: log.end + gap for log in self.topic.model.logs}
        placed = []
        for record in self._placed(records):
            assert record.partition is not None
            placed.append(record._replace(offset=ends[record.partition]))
            ends[record.partition] += 1
        if all(record.offset is not None and record.offset >= 0 for record in placed):
            self.tell_records("keep", placed, strike)
            self.topic.append(placed, keep_offsets=True, strike=strike)

    @rule(partition=PARTITIONS, by=st.sampled_from([0, 1, 4, -1]), strike=STRIKES)
    def move_the_end(self, partition: int, by: int, strike: Strike) -> None:
        log = self.topic.model.logs[partition % len(self.topic.model.logs)]
        self.tell("end", f"{log.partition}:", log.end + by, strike=strike)
        self.topic.move_end(log.partition, log.end + by, strike)

    @rule(by_ms=CLOCK_MOVES_MS)
    def move_the_clock(self, by_ms: int) -> None:
        self.topic.place.clock.advance(by_ms)
        self.tell("at", f"{self.topic.place.clock.now_ms()}ms")

    @rule(
        partitions=st.sampled_from([None, None, None, (0,), (1,)]),
        given=GIVEN_MS,
        race=RACES,
        strike=STRIKES,
    )
    def compact(
        self, partitions: tuple[int, ...] | None, given: int | None, race: tuple[object, ...] | None, strike: Strike
    ) -> None:
        now_ms = None if given is None else self.topic.place.clock.now_ms() + given
        asked = partitions if len(self.topic.model.logs) > 1 else None
        self.tell(
            "compact",
            *([] if now_ms is None else ["--now", f"{now_ms}ms"]),
            *([] if asked is None else ["--partition", asked[0]]),
            strike=strike,
        )
        planned_ms = self.topic.place.clock.now_ms() if now_ms is None else now_ms
        meanwhile = None if race is None or strike is not None else self._race(race)
        done = check_round(self.topic, asked, now_ms, meanwhile, strike)
        if done and meanwhile is None:
            self.check_again(asked, planned_ms)

    @rule(by_ms=CLOCK_MOVES_MS)
    def compact_later(self, by_ms: int) -> None:
        """A round of all logs without bad luck, so that rounds follow one another."""
        self.move_the_clock(by_ms)
        self.compact(None, None, None, None)

    def check_again(self, partitions: tuple[int, ...] | None, now_ms: int) -> None:
        """C41: the same H and now: no version, no report. What a round wrote may be past retention by then (C24)."""
        if self.topic.is_past_retention(now_ms):
            return
        store = self.topic.place.warehouse.store
        state, reports = self.topic.state, len(list(store.reports(self.topic.state)))
        check_round(self.topic, partitions, now_ms)
        assert self.topic.state == state, "a second round at the same time committed (C41)"
        assert len(list(store.reports(state))) == reports

    def _race(self, race: tuple[object, ...]) -> Callable[[], object]:
        place = len(self.lines) - 1  # a scenario says what others do before it says `compact`

        def happens() -> None:
            told = len(self.lines)
            try:
                others()
            finally:
                commands = [f"> meanwhile {line[2:]}" for line in self.lines[told:]]
                self.lines[told:] = []
                self.lines[place:place] = commands

        def others() -> None:
            match race:
                case "append", records:
                    self.append(records, None)  # type: ignore[arg-type]
                case "delete-records", partition, share:
                    self.delete_records(partition, share, None)  # type: ignore[arg-type]
                case "truncate", partition, share, below:
                    self.truncate(partition, share, below, None)  # type: ignore[arg-type]
                case "alter", setting:
                    self.alter(setting, None)  # type: ignore[arg-type]
                case "clock", by_ms:
                    self.move_the_clock(by_ms)  # type: ignore[arg-type]

        return happens

    @rule(given=GIVEN_MS, strike=STRIKES)
    def retain(self, given: int | None, strike: Strike) -> None:
        now_ms = None if given is None else self.topic.place.clock.now_ms() + given
        self.tell("retain", "" if now_ms is None else f"--now {now_ms}ms", strike=strike)
        self.topic.retain(now_ms, strike)

    @rule(partition=PARTITIONS, share=SHARES, strike=STRIKES)
    def delete_records(self, partition: int, share: float, strike: Strike) -> None:
        log = self.topic.model.logs[partition % len(self.topic.model.logs)]
        before = round(-1 + share * (log.end + 2))
        self.tell("delete-records", f"{log.partition}:", before, strike=strike)
        self.topic.delete_records(log.partition, before, strike)

    @rule(partition=PARTITIONS, share=SHARES, below=st.booleans(), strike=STRIKES)
    def truncate(self, partition: int, share: float, below: bool, strike: Strike) -> None:
        log = self.topic.model.logs[partition % len(self.topic.model.logs)]
        to = round(log.start - 1 + share * (log.end - log.start + 2))
        self.tell("truncate", f"{log.partition}:", "--below-compacted" if below else "", to, strike=strike)
        self.topic.truncate(log.partition, to, below_compacted=below, strike=strike)

    @rule(setting=KIND)
    def alter_what_it_is(self, setting: tuple[str, object]) -> None:
        self.alter(setting, None)

    @rule(setting=SETTING, strike=STRIKES)
    def alter(self, setting: tuple[str, object], strike: Strike) -> None:
        name, value = setting[0], self._sized(*setting, self.topic.place.size_unit)
        self.tell("alter", f"{name}={value}", strike=strike)
        self.topic.alter({name: value}, strike=strike)

    @rule(by=st.sampled_from([1, 1, -1]), strike=STRIKES)
    def more_partitions(self, by: int, strike: Strike) -> None:
        wanted = min(len(self.topic.model.logs) + by, MOST_PARTITIONS)
        self.tell("alter", f"--partitions {wanted}", strike=strike)
        self.topic.alter({}, wanted, strike)

    @rule(lose=st.booleans(), strike=STRIKES)
    def uncompact(self, lose: bool, strike: Strike) -> None:
        self.tell("uncompact", "--lose-trimmed" if lose else "", strike=strike)
        self.topic.uncompact(lose_trimmed=lose, strike=strike)

    @rule(strike=STRIKES)
    def undo(self, strike: Strike) -> None:
        self.tell("undo", strike=strike)
        self.topic.undo(strike)

    @rule(strike=STRIKES)
    def sweep(self, strike: Strike) -> None:
        self.tell("sweep --yes", strike=strike)
        check_sweep(self.topic, strike)

    @rule(what=LOOKS, partition=PARTITIONS, share=SHARES, at_ms=TIMES_MS, compacted=st.booleans())
    def read(self, what: str, partition: int, share: float, at_ms: int, compacted: bool) -> None:
        """One rule for all that changes nothing, so that most of a run does change something."""
        place = partition % len(self.topic.model.logs)
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
            case "read on":
                most = round(share * 3) if compacted else 1_000
                self.readers = [reader for reader in self.readers if not reader.read_on(most)]
            case "follow":
                self.followers = [follower for follower in self.followers if follower.poll()]

    def tell_records(self, verb: str, records: Sequence[Record], strike: Strike) -> None:
        """One command for each log: of the batches here, a scenario knows those to one log."""
        for partition in sorted({record.partition or 0 for record in records}):
            mine = [record for record in records if record.partition == partition]
            self.tell(verb, f"{partition}:", *map(_drawn, mine), strike=strike)

    @invariant()
    def the_topic_is_what_the_textbook_says(self) -> None:
        if hasattr(self, "topic"):
            check_topic(self.topic)


def _drawn(record: Record) -> str:
    key = "·" if record.key is None else record.key.decode() or "''"
    value = "∅" if record.value is None else record.value.decode() or "''"
    place = "" if record.offset is None else f"@{record.offset}"
    header = f"#{int.from_bytes(record.headers[-1][1] or b'', 'big', signed=True)}" if record.headers else ""
    return f"{key}={value}{place}!{record.timestamp}{header}"
