"""What a reader costs in metadata, by the number of partitions: counted, not timed.

A version's entries are decoded once and handed to the logs that are read; a new version decodes what is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import lithify
from lithify import Record, Topic
from lithify.api.groups import Membership
from lithify.errors import DamagedError
from lithify.service.read.fetch import LogsReader
from lithify.store.iceberg.manifests import reading
from lithify.store.iceberg.manifests.avro_blocks import AvroFile
from lithify.store.iceberg.manifests.columns import Columns, Name

PARTITIONS = [1, 300]

Open = Callable[[Topic], LogsReader]


def plain(topic: Topic) -> LogsReader:
    return topic.reader(follow=True)


def member(topic: Topic) -> LogsReader:
    return topic.reader(follow=True, group=Membership("g", 600_000))


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts entries and lists that are decoded within the block."""
    done: Counter[str] = Counter()
    decode = reading.columns_of

    def counting(files: Sequence[AvroFile], wanted: frozenset[Name]) -> Columns:
        found = decode(files, wanted)
        if wanted == reading.OF_LISTS:
            done["lists"] += 1
        else:
            done["entries"] += found.rows
        return found

    with monkeypatch.context() as patched:
        patched.setattr(reading, "columns_of", counting)
        yield done


def pulled(reader: LogsReader) -> int:
    return sum(len(batch) for batch in reader.poll())


@pytest.mark.parametrize("opened", [plain, member])
@pytest.mark.parametrize("partitions", PARTITIONS)
def test_entries_are_decoded_once_whatever_the_number_of_partitions(
    partitions: int, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = lithify.open(str(tmp_path / "lake")).create_topic("orders", partitions=partitions)
    topic.append([Record(b"k", b"v", partition=n) for n in range(partitions)])
    with ExitStack() as stack:
        with counted(monkeypatch) as first:
            reader = opened(topic)
            if hasattr(reader, "close"):
                stack.callback(reader.close)
            assert pulled(reader) == partitions
        assert first == {"entries": partitions, "lists": 1}

        topic.append([Record(b"k", b"w", partition=partitions - 1)])
        with counted(monkeypatch) as later:
            assert pulled(reader) == 1
        assert later == {"entries": 1, "lists": 1}


def test_a_reset_of_a_group_decodes_each_entry_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lithify.open(str(tmp_path / "lake"))
    topic = lake.create_topic("orders", partitions=20)
    topic.append([Record(b"k", b"v", partition=n) for n in range(20)])
    with topic.reader(group="g") as reader:
        list(reader)
        reader.commit()
    reading.SEGMENTS.decoded.clear()
    with counted(monkeypatch) as done:
        lake.group("g").reset("orders", to=lithify.AtTime(0))
    assert done == {"entries": 20, "lists": 1}


def test_a_reader_at_the_end_reads_no_manifest_before_there_is_something_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = lithify.open(str(tmp_path / "lake")).create_topic("orders", partitions=3)
    topic.append([Record(b"k", b"v", partition=n) for n in range(3)])
    reading.SEGMENTS.decoded.clear()
    with counted(monkeypatch) as first:
        reader, back = topic.reader(start="latest", follow=True), topic.reader(0, "latest")
        assert (pulled(reader), reader.has_message_available(), back.has_message_available()) == (0, False, False)
    assert first == {}

    topic.append([Record(b"k", b"w", partition=2)])
    with counted(monkeypatch) as later:
        assert pulled(reader) == 1
    assert later == {"entries": 4, "lists": 1}

    back.seek(0)
    assert [record.value for record in back] == [b"v"], "the version that it was opened on"


def test_a_reader_with_something_to_read_is_not_opened_without_it(tmp_path: Path) -> None:
    topic = lithify.open(str(tmp_path / "lake")).create_topic("orders")
    topic.append([Record(b"k", b"v")])
    for manifest in (tmp_path / "lake").rglob("*-m0.avro"):
        manifest.unlink()
    with pytest.raises(DamagedError, match="the file is missing"):
        topic.reader(0)
    assert topic.reader(0, "latest").read_next() is None
