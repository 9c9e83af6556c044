"""Views of Pulsar topics that Spark writes are the reference's (C54), and a failed one leaves no ledger (C55)."""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from lithify.errors import DamagedError
from lithify.model.message import MessageId
from lithify.ports.engine import RunLimits
from lithify.ports.pulsar.views import PlannedView, ViewRules
from lithify.pulsar import compact_entries
from lithify.pulsar.format.entry import RawEntry
from lithify.pulsar.format.framing import unframed
from lithify.spark.pulsar.engine import PulsarEngine
from lithify.spark.tasks import Pace
from spark.engines import SLOTS
from support.pulsar.entries import Form, Sent, batch, single
from support.pulsar.ledgers import FileLedgers, LeavingLedgers, LedgerFolder
from support.pulsar.topics import SEALING, StoredTopic, ranges_of

pytestmark = pytest.mark.spark
RULES = ViewRules()
LIMITS = RunLimits(task_memory_bytes=2**26)


@dataclass(frozen=True, slots=True)
class Readers:
    """Readers of partitions in folders of their names."""

    folder: Path

    def __call__(self, partition: str, small_entries: bool) -> StoredTopic:
        return StoredTopic(self.folder / partition / "backlog", self.folder / partition / "view", at_once=50)


@dataclass(slots=True)
class Topics:
    """Stored partitions, ledgers, and an engine over them."""

    folder: Path
    engine: PulsarEngine
    ledgers: LedgerFolder

    def planned(self, partition: str, backlog: list[RawEntry], view: list[RawEntry], cuts: int = 1) -> PlannedView:
        (self.folder / partition).mkdir()
        StoredTopic.of(self.folder / partition, backlog, view)
        last = backlog[-1]
        return PlannedView(partition, ranges_of(backlog, view, cuts), MessageId(last.ledger, last.entry))

    def write(self, *views: PlannedView, rules: ViewRules = RULES, limits: RunLimits = LIMITS):
        return self.engine.write(views, rules, limits, "run", lambda *_: None)


@pytest.fixture
def topics(session, tmp_path):
    return topics_for(session, tmp_path, one_task_bytes=0)


def topics_for(session, folder: Path, *, one_task_bytes: int, kind: type[FileLedgers] = FileLedgers) -> Topics:
    ledgers = LedgerFolder(folder / "ledgers", kind)
    ledgers.folder.mkdir()
    (folder / "topics").mkdir()
    pace = Pace(time.monotonic, time.sleep)
    engine = PulsarEngine(
        lambda: session, Readers(folder / "topics"), ledgers, 2, pace, lambda: "seed", one_task_bytes=one_task_bytes
    )
    return Topics(folder / "topics", engine, ledgers)


def a_topic(seed: int, entries: int, keys: int) -> list[RawEntry]:
    """Entries of all kinds, over so many keys, one of which has a third of all messages."""
    chance = random.Random(seed)

    def sent() -> Sent:
        key = "skewed" if chance.random() < 0.3 else f"key-{chance.randrange(keys)}"
        value = b"" if chance.random() < 0.1 else b"v" * chance.randrange(1, 60)
        return Sent(key if chance.random() < 0.97 else None, value, event_time=chance.randrange(5))

    made = []
    for number in range(entries):
        place, form = (7 + number // 100, number % 100), Form(codec=chance.choice([0, 1, 2, 3, 4]))
        match chance.randrange(20):
            case 0:
                made.append(single(*place, sent(), form, **SEALING))
            case 1 if number > entries // 2:
                made.append(batch(*place, [sent(), sent()], form, **SEALING))
            case 2:
                unit = f"p-{number // 25}".encode()
                made.append(
                    single(*place, Sent("chunked"), form, uuid=unit, chunk_id=number % 2, num_chunks_from_msg=2)
                )
            case 3:
                made.append(single(*place, sent(), form, marker_type=1))
            case kind if kind < 12:
                made.append(batch(*place, [sent() for _ in range(chance.randrange(1, 9))], form))
            case _:
                made.append(single(*place, sent(), form))
    return made


def reference(entries: list[RawEntry], rules: ViewRules) -> list[bytes]:
    return [data for _, _, data in compact_entries(entries, retain_null_key=rules.retain_null_key, order=rules.order)]


@pytest.mark.parametrize(
    "rules",
    [ViewRules(), ViewRules(retain_null_key=True), ViewRules(order="event-time")],
    ids=["publish", "null keys", "event time"],
)
def test_views_are_those_of_the_reference(topics, rules):
    """C54: of several partitions in one job, with and without an earlier view, in several ranges."""
    first, second = a_topic(1, 400, 60), a_topic(2, 300, 5000)
    view = [unframed(data) for data in reference(first[:250], rules)]
    written = topics.write(
        topics.planned("p-0", first[250:], view, 4), topics.planned("p-1", second, [], 3), rules=rules
    )
    assert topics.ledgers.entries(written["p-0"].ledger) == reference([*view, *first[250:]], rules)
    assert topics.ledgers.entries(written["p-1"].ledger) == reference(second, rules)
    assert len(topics.ledgers.ledgers()) == 2


def plain(seed: int, entries: int, keys: int, *, at: int = 0) -> list[RawEntry]:
    chance = random.Random(seed)

    def sent() -> Sent:
        return Sent(f"key-{chance.randrange(keys)}", b"" if chance.random() < 0.1 else b"value")

    return [batch(9, at + number, [sent() for _ in range(5)]) for number in range(entries)]


def test_few_new_entries_are_done_in_one_task(session, tmp_path):
    """C54: with the same result; where they have sealed batches, by a key pass after all."""
    topics = topics_for(session, tmp_path, one_task_bytes=2**20)
    old, new = plain(3, 300, 200), plain(4, 40, 300, at=1000)
    view = [unframed(data) for data in reference(old, RULES)]
    sealed = [*new, batch(9, 2000, [Sent("x"), Sent("y")], **SEALING), single(9, 2001, Sent("key-1", b""))]
    written = topics.write(topics.planned("p-0", new, view), topics.planned("p-1", sealed, view))
    assert topics.ledgers.entries(written["p-0"].ledger) == reference([*view, *new], RULES)
    assert topics.ledgers.entries(written["p-1"].ledger) == reference([*view, *sealed], RULES)
    assert len(topics.ledgers.ledgers()) == 2


def shuffle_folders(context):
    """Where Spark keeps what it shuffles: those of the driver, and of the executors of a cluster."""
    blocks = context._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager().localDirs()
    told = context.range(SLOTS, numSlices=SLOTS).map(lambda _: os.environ.get("SPARK_LOCAL_DIRS", "")).collect()
    return [block.getPath() for block in blocks] + [folder for given in told for folder in given.split(",") if folder]


@pytest.mark.parametrize("kind, sole", [(FileLedgers, True), (LeavingLedgers, False)])
def test_a_ledger_that_a_task_could_not_delete_is_told_of(session, tmp_path, kind, sole):
    """C55: of a task that meets in the view what it cannot judge alone, and has begun a ledger by then."""
    topics = topics_for(session, tmp_path, one_task_bytes=2**20, kind=kind)
    view = [*plain(3, 30, 20), batch(9, 900, [Sent("x"), Sent("y")], **SEALING)]
    new = plain(4, 10, 20, at=1000)
    written = topics.write(topics.planned("p", new, view))["p"]
    assert topics.ledgers.entries(written.ledger) == reference([*view, *new], RULES)
    assert written.sole is sole
    assert len(topics.ledgers.ledgers()) == (1 if sole else 2)


class LosingLedgers(FileLedgers):
    """The first one loses what Spark has shuffled: tasks that have not read it fail, and their stage begins again."""

    def create(self, topic, horizon, run_id):
        blocks = self._folder / "blocks"
        with suppress(FileNotFoundError):
            for folder in blocks.rename(self._folder / "lost").read_text().splitlines():
                for path in Path(folder).rglob("shuffle_*"):
                    path.unlink(missing_ok=True)
        return super().create(topic, horizon, run_id)


@pytest.mark.parametrize("kind, sole", [(FileLedgers, True), (LosingLedgers, False)])
def test_a_stage_that_begins_again_may_have_left_ledgers(session, tmp_path, kind, sole):
    """C55: its tasks are first attempts again, while the earlier ones may still write."""
    topics = topics_for(session, tmp_path, one_task_bytes=2**20, kind=kind)
    (topics.ledgers.folder / "blocks").write_text("\n".join(shuffle_folders(session.sparkContext)))
    partitions = {f"p-{number}": plain(number, 5, 20) for number in range(6)}
    written = topics.write(*(topics.planned(name, entries, []) for name, entries in partitions.items()))
    for name, entries in partitions.items():
        assert topics.ledgers.entries(written[name].ledger) == reference(entries, RULES)
        assert written[name].sole is sole


def test_keys_that_do_not_fit_into_memory_are_compared_in_parts(session, tmp_path):
    """C38, C54: 200,000 keys in the least memory that there is."""
    topics = topics_for(session, tmp_path, one_task_bytes=0)
    entries = [
        batch(5, number, [Sent(f"{number * 500 + n:032}" * 4, b"v") for n in range(500)]) for number in range(400)
    ] + [batch(6, number, [Sent(f"{number * 500 + n:032}" * 4, b"") for n in range(500)]) for number in range(300)]
    written = topics.write(topics.planned("p", entries, [], 5), limits=RunLimits(task_memory_bytes=2**24))
    view = written["p"]
    assert (view.messages_in, view.messages_out) == (350_000, 50_000)
    assert (view.entries_in, view.entries_out) == (700, 100)


def test_a_damaged_entry_fails_its_partition_only(topics):
    """C55: it is named by ledger and entry, no ledger is left, and the other partition has its view."""
    entries = a_topic(1, 200, 20)
    broken = [raw._replace(data=raw.data[:-1] + b"\0") if number == 150 else raw for number, raw in enumerate(entries)]
    written = topics.write(topics.planned("p-0", broken, [], 3), topics.planned("p-1", entries, [], 2))
    error = written["p-0"]
    assert isinstance(error, DamagedError)
    assert "8:50" in str(error)
    assert topics.ledgers.ledgers() == [str(written["p-1"].ledger)]


@pytest.mark.parametrize("one_task_bytes", [0, 2**30], ids=["shuffled", "alone"])
def test_a_batch_that_lies_about_its_count_stays_whole_where_it_is_to_be_skipped(session, tmp_path, one_task_bytes):
    """C74: it is named, in a new view and in the one after it."""
    topics = topics_for(session, tmp_path, one_task_bytes=one_task_bytes)
    liar, rules = batch(5, 1, [Sent("a"), Sent("b")], num_messages_in_batch=9), ViewRules(skip_damaged=True)
    entries = [single(5, 0, Sent("a", b"0")), liar, single(5, 2, Sent("a", b"1"))]
    planned = topics.planned("p", entries, [])
    assert isinstance(topics.write(planned)["p"], DamagedError)
    first = topics.write(planned, rules=rules)["p"]
    left = [unframed(data) for data in topics.ledgers.entries(first.ledger)]
    assert left == entries[1:]
    second = topics.write(topics.planned("q", [single(5, 3, Sent("c"))], left), rules=rules)["q"]
    assert [unframed(data) for data in topics.ledgers.entries(second.ledger)][:2] == left
    for view in (first, second):
        assert (view.damaged_entries, view.damaged_named) == (1, ("5:1",))


def test_counts_are_of_messages_entries_and_bytes(topics):
    """C54: the report says what was read and what is left."""
    entries = [
        batch(5, 0, [Sent("a"), Sent("b")]),
        single(5, 1, Sent("a", b"")),
        single(5, 2, Sent("c", b"x")),
        single(5, 3, Sent(None)),
    ]
    view = topics.write(topics.planned("p", entries, []))["p"]
    left = [unframed(data) for data in topics.ledgers.entries(view.ledger)]
    assert (view.messages_in, view.messages_out, view.entries_in, view.entries_out) == (5, 2, 4, 2)
    assert view.bytes_in == sum(len(raw.data) for raw in entries)
    assert view.bytes_out == sum(len(raw.data) for raw in left)


@pytest.mark.parametrize("one_task_bytes", [0, 2**30], ids=["shuffled", "alone"])
def test_rates_are_kept_by_all_tasks_together(session, tmp_path, one_task_bytes):
    """C40: two megabytes are read twice, at two megabytes a second."""
    topics = topics_for(session, tmp_path, one_task_bytes=one_task_bytes)
    entries = [single(5, number, Sent(f"k{number}", b"v" * 10_000)) for number in range(200)]
    began = time.monotonic()
    written = topics.write(topics.planned("p", entries, [], 4), limits=RunLimits(2**26, read_rate_bytes=2_000_000))
    assert time.monotonic() - began > 1.8
    assert written["p"].messages_out == 200
    began = time.monotonic()
    topics.write(topics.planned("q", entries, [], 4), limits=RunLimits(2**26, write_rate_bytes=1_000_000))
    assert time.monotonic() - began > 1.8
