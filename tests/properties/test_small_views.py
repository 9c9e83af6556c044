"""Views that are written without Spark are those of the reference, or are left to the other engine (C54)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import DamagedError, LithifyError, RoundAbandonedError
from lithify.model.message import MessageId
from lithify.ports.engine import Progress, RunLimits, silent
from lithify.ports.pulsar.views import PlannedView, ViewRules, WrittenView
from lithify.pulsar import compact_entries
from lithify.pulsar.compaction.rules import order_of
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.format.framing import unframed
from lithify.pulsar.rounds import small_views
from lithify.pulsar.rounds.round_messages import RoundRules
from lithify.pulsar.rounds.small_views import SmallViews
from support.pulsar.entries import Sent, batch, single
from support.pulsar.ledgers import FileLedgers, LeavingLedgers, LedgerFolder
from support.pulsar.pure_rounds import shuffled_round
from support.pulsar.topics import ALL_KINDS, PLAIN_KINDS, SEALING, StoredTopic, entries, ranges_of

RULES = ViewRules()
LIMITS = RunLimits(task_memory_bytes=2**26)
PLAIN = [batch(5, number, [Sent(f"k{(number * 3 + n) % 40}", b"v" * 50) for n in range(4)]) for number in range(60)]
OLD, NEW = PLAIN[:40], PLAIN[40:]


@dataclass(slots=True)
class KeyPasses:
    """A `ViewEngine` with the key pass that Spark's tasks do."""

    topics: dict[str, StoredTopic]
    ledgers: LedgerFolder
    asked: list[str] = field(default_factory=list)

    def write(
        self, views: Sequence[PlannedView], rules: ViewRules, limits: RunLimits, run_id: str, progress: Progress
    ) -> Mapping[str, WrittenView | LithifyError]:
        self.asked += [view.partition for view in views]
        return {view.partition: self._written(view, rules, run_id) for view in views}

    def _written(self, view: PlannedView, rules: ViewRules, run_id: str) -> WrittenView:
        round_rules = RoundRules(rules.retain_null_key, order_of(rules.order), rules.skip_damaged)
        left = shuffled_round(self.topics[view.partition], view.ranges, round_rules)
        with self.ledgers() as ledgers:
            ledger = ledgers.create(view.partition, view.horizon, run_id)
            ledgers.append(left)
        return WrittenView(ledger, 0, 0, 0, len(left), 0, 0)


class SmallRounds:
    """Partitions in a folder, and the two engines over them."""

    def __init__(self, folder: Path, kind: type[FileLedgers] = FileLedgers, **how: int) -> None:
        self.folder, self.topics, self.slept_s = folder, dict[str, StoredTopic](), 0.0
        self.ledgers = LedgerFolder(folder / "ledgers", kind)
        self.ledgers.folder.mkdir()
        self.larger = KeyPasses(self.topics, self.ledgers)
        self.engine = SmallViews(
            self.larger,
            lambda name, _: self.topics[name],
            self.ledgers,
            lambda: self.slept_s,
            self._sleep,
            lambda: "seed",
            **how,
        )

    def planned(
        self, partition: str, backlog: list[RawEntry], view: Sequence[RawEntry] = (), cuts: int = 1
    ) -> PlannedView:
        (self.folder / partition).mkdir()
        self.topics[partition] = StoredTopic.of(self.folder / partition, backlog, view)
        return PlannedView(partition, ranges_of(backlog, view, cuts), MessageId(*backlog[-1][:2]))

    def write(
        self,
        *views: PlannedView,
        rules: ViewRules = RULES,
        limits: RunLimits = LIMITS,
        progress: Progress = silent,
    ) -> Mapping[str, WrittenView | LithifyError]:
        return self.engine.write(views, rules, limits, "run", progress)

    def _sleep(self, seconds: float) -> None:
        self.slept_s += seconds

    def left(self, written: WrittenView | LithifyError) -> list[bytes]:
        assert isinstance(written, WrittenView), written
        return self.ledgers.entries(written.ledger)


def reference(given_entries: Sequence[RawEntry], rules: ViewRules = RULES) -> list[bytes]:
    given_entries = list(given_entries)
    return [
        data for *_, data in compact_entries(given_entries, retain_null_key=rules.retain_null_key, order=rules.order)
    ]


def framed_view(given_entries: Sequence[RawEntry], rules: ViewRules = RULES) -> list[RawEntry]:
    return [unframed(data) for data in reference(given_entries, rules)]


@given(
    topics=st.lists(entries(ALL_KINDS), min_size=1, max_size=3),
    at=st.integers(0, 12),
    cuts=st.integers(1, 3),
    rules=st.builds(ViewRules, st.booleans(), st.sampled_from(["publish", "event-time"])),
)
def test_a_small_round_leaves_what_the_reference_leaves(topics, at, cuts, rules):
    """C54: of several partitions with entries of every kind; whichever engine it is that writes."""
    with tempfile.TemporaryDirectory() as folder:
        small, wanted, plans = SmallRounds(Path(folder)), {}, []
        for number, topic in enumerate(topics):
            some = min(at, len(topic) - 1)
            view, new = framed_view(topic[:some], rules), topic[some:]
            plans.append(small.planned(f"p{number}", new, view, cuts))
            wanted[f"p{number}"] = reference([*view, *new], rules)
        written = small.write(*plans, rules=rules)
        assert {name: small.left(one) for name, one in written.items()} == wanted
        assert len(small.ledgers.ledgers()) == len(topics)


@given(topic=entries(PLAIN_KINDS), at=st.integers(0, 24), retain=st.booleans())
def test_no_other_engine_is_asked_for_plain_messages(topic, at, retain):
    with tempfile.TemporaryDirectory() as folder:
        small, rules = SmallRounds(Path(folder)), ViewRules(retain)
        some = min(at, len(topic) - 1)
        small.write(small.planned("p", topic[some:], framed_view(topic[:some], rules)), rules=rules)
        assert small.larger.asked == []


def test_a_round_of_more_bytes_is_left_to_the_other_engine(tmp_path):
    """C38: of all partitions together, their earlier views included; and of fewer bytes where they are new."""
    view = framed_view(OLD)
    new, size = (sum(len(raw.data) for raw in some) for some in (NEW, (*NEW, *view)))
    for number, limits in enumerate(({"small_bytes": size}, {"new_bytes": new})):
        (tmp_path / str(number)).mkdir()
        small = SmallRounds(tmp_path / str(number), **limits)
        small.write(small.planned("p", NEW, view))
        assert small.larger.asked == []
        small.write(small.planned("q", NEW, view), small.planned("r", NEW[:1]))
        assert small.larger.asked == ["q", "r"]


def test_a_round_that_reads_more_than_was_planned_is_left_to_the_other_engine(tmp_path):
    """C38: entries can be larger than the average of their ledger. What was begun is deleted."""
    view = framed_view(OLD)
    new, whole = (sum(len(raw.data) for raw in some) for some in (NEW, view))
    for number, most in enumerate((new // 3, (new + whole // 2) // 2, (2 * new + whole) // 2 + 1)):
        (tmp_path / str(number)).mkdir()
        small = SmallRounds(tmp_path / str(number), small_bytes=most)
        planned = small.planned("p", NEW, view)
        told_little = tuple(replace(one, size_bytes=1) for one in planned.ranges)
        written = small.write(replace(planned, ranges=told_little))["p"]
        assert small.larger.asked == (["p"] if number < 2 else [])
        assert small.left(written) == reference([*view, *NEW])
        assert len(small.ledgers.ledgers()) == 1


@pytest.mark.parametrize("fields", [SEALING, {"uuid": b"u", "num_chunks_from_msg": 2, "chunk_id": 0}])
def test_what_cannot_be_judged_here_is_not_read_to_its_end(tmp_path, fields):
    """C38: nor is all of it held. An entry can be that of a sealed batch or of a chunk whatever is before it."""
    odd = batch if fields is SEALING else single
    for at in (0, 20, 59):
        (tmp_path / str(at)).mkdir()
        small, told = SmallRounds(tmp_path / str(at)), list[int]()
        sent = [Sent("x"), Sent("y")] if odd is batch else Sent("x")
        planned = small.planned("p", [*PLAIN[:at], *(odd(5, number, sent, **fields) for number in range(at, 60))])
        small.write(planned, progress=lambda _phase, done, _total, told=told: told.append(done))
        assert small.larger.asked == ["p"]
        assert len(set(told)) <= 2 + at // 3, "lists of three entries"


def test_more_keys_than_fit_into_memory_are_left_to_the_other_engine(tmp_path, monkeypatch):
    """C38: a batch of few bytes can have many keys."""
    monkeypatch.setattr(small_views, "MEMORY_BYTES", 2**10)
    small = SmallRounds(tmp_path)
    small.write(small.planned("p", [batch(5, 0, [Sent(f"{n:0100}") for n in range(2000)])]))
    assert small.larger.asked == ["p"]


@pytest.mark.parametrize(("kind", "sole"), [(FileLedgers, True), (LeavingLedgers, False)])
def test_a_ledger_that_could_not_be_deleted_is_told_of(tmp_path, kind, sole):
    """C55: of a round that meets in the view what it cannot judge, and has begun a ledger by then."""
    small = SmallRounds(tmp_path, kind)
    view = [*framed_view(PLAIN[:20]), batch(5, 30, [Sent("x"), Sent("y")], **SEALING)]
    written = small.write(small.planned("p", PLAIN[40:], view), small.planned("q", PLAIN))
    assert small.larger.asked == ["p"]
    assert small.left(written["p"]) == reference([*view, *PLAIN[40:]])
    assert [one.sole for one in written.values() if isinstance(one, WrittenView)] == [True, sole]
    assert len(small.ledgers.ledgers()) == (2 if sole else 3)


def test_a_damaged_entry_fails_its_partition_only(tmp_path):
    """C55: it is named by ledger and entry, and no ledger is left."""
    small = SmallRounds(tmp_path)
    broken = [*PLAIN[:9], PLAIN[9]._replace(data=PLAIN[9].data[:-1] + b"\0"), *PLAIN[10:]]
    written = small.write(small.planned("p", broken), small.planned("q", PLAIN))
    assert isinstance(written["p"], DamagedError) and "5:9" in str(written["p"])
    assert small.left(written["q"]) == reference(PLAIN)
    assert len(small.ledgers.ledgers()) == 1 and small.larger.asked == []


def test_an_abandoned_round_ends_at_once_and_leaves_no_ledger_of_its_view(tmp_path):
    """Whenever `progress` raises: nothing is asked of the other engine either."""
    for number in range(1, 1000):
        (tmp_path / str(number)).mkdir()
        small, told = SmallRounds(tmp_path / str(number)), list[int]()

        def progress(_phase, done, total, told=told, number=number):
            told.append(done)
            assert 0 <= done <= total
            if len(told) == number:
                raise RoundAbandonedError("abandoned")

        planned = small.planned("p", NEW, framed_view(OLD))
        try:
            small.write(planned, progress=progress)
        except RoundAbandonedError:
            assert len(told) == number
            assert small.ledgers.ledgers() == small.larger.asked == []
            continue
        assert number > 10, "each list of entries is told"
        return


@pytest.mark.parametrize("abandons", [False, True])
def test_progress_is_told_while_bookkeeper_is_connected_to(tmp_path, abandons):
    """So that a round whose subscription is lost meanwhile ends, and one that is abandoned."""
    small, told = SmallRounds(tmp_path), list[int]()
    may_open, closed = Event(), Event()

    @contextmanager
    def slowly():
        try:
            with small.ledgers() as ledgers:
                yield ledgers
        finally:
            closed.set()

    def open_ledgers():
        assert may_open.wait(60), "nobody was told of the wait"
        return slowly()

    def progress(_phase: str, done: int, _total: int) -> None:
        told.append(done)
        if told[-3:] == [done] * 3:
            may_open.set()
            if abandons:
                raise RoundAbandonedError("abandoned")

    small.engine = replace(small.engine, open_ledgers=open_ledgers)
    planned = small.planned("p", NEW)
    if abandons:
        with pytest.raises(RoundAbandonedError):
            small.write(planned, progress=progress)
        assert small.ledgers.ledgers() == []
    else:
        assert small.left(small.write(planned, progress=progress)["p"]) == reference(NEW)
    assert closed.wait(60)


def test_rates_are_kept(tmp_path):
    """C40: 40 KB are read twice at 4 KB a second, or written once at 2."""
    new = [single(5, number, Sent(f"k{number}", b"v" * 1000)) for number in range(40)]
    small = SmallRounds(tmp_path)
    small.write(small.planned("p", new), limits=replace(LIMITS, read_rate_bytes=4000))
    assert 19 < small.slept_s < 25
    small.slept_s = 0
    small.write(small.planned("q", new), limits=replace(LIMITS, write_rate_bytes=2000))
    assert 19 < small.slept_s < 25


def test_no_views_are_nothing_to_do(tmp_path):
    def progress(*_: object) -> None:
        raise AssertionError

    assert SmallRounds(tmp_path).write(progress=progress) == {}
