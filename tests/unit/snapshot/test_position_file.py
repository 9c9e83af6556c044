"""The file of a consumer's position: whole or not there."""

from __future__ import annotations

import errno
import json
import tempfile

import pytest

from lithify.columnar.files.replaced import replacing
from lithify.errors import InvalidInputError, WarehouseError
from lithify.model.cursor import Cursor
from lithify.model.message import MessageId
from lithify.model.sources.ends import KnownEnds, SourceEnd
from lithify.model.sources.source import ComparedRecord, EpochAt
from lithify.service.snapshot.position import StoredPosition
from lithify.service.snapshot.position_file import PositionFile


def test_what_is_stored_is_loaded(tmp_path):
    file = PositionFile(tmp_path / "p", "lake", "kafka")
    assert file.load() == StoredPosition({})
    for offset in (1, 2):
        position = StoredPosition({0: Cursor("i", 0, offset, 5), 12: Cursor("i", 3, 0, 6)}, "id")
        file.store(position)
        assert file.load() == position
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_what_a_consumer_has_read_last_is_stored_beside_the_cursors(tmp_path):
    """C72"""
    file = PositionFile(tmp_path / "p", "lake", "kafka")
    position = StoredPosition({0: Cursor("i", 0, 3, 5)}, epochs={0: EpochAt(3, 1)}, lasts={0: ComparedRecord(2, 77, 9)})
    file.store(position)
    assert file.load() == position
    assert file.load().reached(0, 3).last == ComparedRecord(2, 77, 9)


def test_ids_of_pulsar_are_stored_beside_the_cursors(tmp_path):
    file = PositionFile(tmp_path / "p", "lake", "persistent://t/n/topic", "Pulsar")
    cursors = {0: Cursor("i", 0, 3, 5), 1: Cursor("i", 0, 0, 5)}
    ends = {0: KnownEnds((SourceEnd(3, 5, 7), SourceEnd(4, 6, None)), ((1, 2),))}
    position = StoredPosition(cursors, "id", {0: MessageId(7, 4, 2)}, ends=ends)
    file.store(position)
    assert file.load() == position
    told = json.loads(file.path.read_text())
    assert (told["pulsar"], told["pulsar_id"], told["places"]["0"]["message"]) == (
        "persistent://t/n/topic",
        "id",
        [7, 4, 2],
    )
    with pytest.raises(InvalidInputError, match="not a position of this consumer"):
        PositionFile(tmp_path / "p", "lake", "persistent://t/n/topic").load()  # it is none of Kafka


@pytest.mark.parametrize("message", [[7], [7, 4, 2, 1], "7:4", ["7", "4", "2"], None, [7, 4, 1.5]])
def test_an_id_that_is_none_is_refused(tmp_path, message):
    file = PositionFile(tmp_path / "p", "lake", "t", "Pulsar")
    file.store(StoredPosition({0: Cursor("i", 0, 3, 5)}, "id", {0: MessageId(7, 4, 2)}))
    told = json.loads(file.path.read_text())
    told["places"]["0"]["message"] = message
    file.path.write_text(json.dumps(told))
    with pytest.raises(InvalidInputError, match="not a position of this consumer"):
        file.load()


def test_one_of_format_1_is_loaded(tmp_path):
    """It had no id of Kafka's topic, and no epochs."""
    place = {"identity": "i", "generation": 1, "offset": 7, "as_of_ms": 99}
    told = {"format": 1, "lake": "lake", "kafka": "kafka", "places": {"0": place}}
    (tmp_path / "p").write_text(json.dumps(told))
    assert PositionFile(tmp_path / "p", "lake", "kafka").load() == StoredPosition({0: Cursor("i", 1, 7, 0, 99)})


def test_a_store_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    file = PositionFile(tmp_path / "p", "lake", "kafka")
    file.store(StoredPosition({0: Cursor("i", 0, 1, 5)}))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(WarehouseError, match="cannot be stored: No space"):
        patched.setattr("os.fsync", full)
        file.store(StoredPosition({0: Cursor("i", 0, 2, 5)}))
    assert file.load().cursors[0].offset == 1
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


def test_programs_that_store_at_once_leave_a_whole_one(tmp_path):
    """As one that was taken for gone, and its successor: one of them renamed what the other was writing."""
    file = PositionFile(tmp_path / "p", "lake", "kafka")
    with replacing(file.path) as unfinished:
        unfinished.write(b"half of")
        unfinished.flush()
        file.store(StoredPosition({0: Cursor("i", 0, 2, 5)}))
        assert file.load().cursors[0].offset == 2
        unfinished.write(b" another")
    assert file.path.read_bytes() == b"half of another"
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


@pytest.mark.parametrize("lake, kafka", [("other", "kafka"), ("lake", "other")])
def test_that_of_others_is_refused(tmp_path, lake, kafka):
    PositionFile(tmp_path / "p", lake, kafka).store(StoredPosition({}))
    with pytest.raises(InvalidInputError, match=f"the position of {lake} with Kafka's {kafka}"):
        PositionFile(tmp_path / "p", "lake", "kafka").load()


def test_nothing_is_written_through_a_link_that_another_program_made(tmp_path, monkeypatch):
    """In a folder that others may write to."""
    monkeypatch.setattr(tempfile, "_name_sequence", iter(["guessed", "other"]))
    foreign = tmp_path / "foreign"
    foreign.write_text("precious")
    (tmp_path / ".lithify-guessed.new").symlink_to(foreign)
    file = PositionFile(tmp_path / "p", "lake", "kafka")
    file.store(StoredPosition({0: Cursor("i", 0, 1, 5)}))
    assert foreign.read_text() == "precious"
    assert not file.path.is_symlink()
    assert file.load().cursors[0].offset == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"format": 1, "lake": "lake", "kafka": "kafka", "places": {"0": {}}}',
        b"[" * 200_000,
        b"9" * 9000,
        b"\xff\xfe\x00",
    ],
    ids=range(7),
)
def test_what_is_none_is_refused(tmp_path, content):
    (tmp_path / "p").write_bytes(content)
    with pytest.raises(InvalidInputError, match="not a position of this consumer"):
        PositionFile(tmp_path / "p", "lake", "kafka").load()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(WarehouseError, match="cannot be read"):
        PositionFile(tmp_path, "lake", "kafka").load()


def test_leader_epochs_are_kept_and_positions_without_them_are_read(tmp_path):
    """C72"""
    file = PositionFile(tmp_path / "position", "orders", "orders")
    position = StoredPosition({0: Cursor("i", 0, 9, 5)}, "id", {}, {0: EpochAt(8, 3)})
    file.store(position)
    assert file.load() == position
    text = json.loads((tmp_path / "position").read_text())
    del text["checksum"]
    del text["places"]["0"]["leader_epoch"]
    (tmp_path / "position").write_text(json.dumps(text))
    assert file.load() == StoredPosition({0: Cursor("i", 0, 9, 5)}, "id")


def test_a_flipped_digit_is_seen(tmp_path):
    """C48: every digit of every number, and every letter outside of the checksum's own name."""
    file = PositionFile(tmp_path / "position", "orders", "t", "Pulsar")
    ends = {0: KnownEnds((SourceEnd(3, 5, 7),))}
    file.store(StoredPosition({0: Cursor("i", 1, 9, 5, 44)}, "id", {0: MessageId(7, 4, 2)}, {0: EpochAt(8, 3)}, ends))
    text = file.path.read_text()
    name = text.index("checksum")
    for place, character in enumerate(text):
        if character.isalnum() and not name <= place < name + len("checksum"):
            other = {"9": "8", "z": "y"}.get(character, chr(ord(character) + 1))
            file.path.write_text(text[:place] + other + text[place + 1 :])
            with pytest.raises(InvalidInputError):
                file.load()


def test_a_position_without_a_checksum_is_read(tmp_path):
    """One of an earlier version, or one that was written by hand."""
    file = PositionFile(tmp_path / "position", "orders", "orders")
    file.store(StoredPosition({0: Cursor("i", 0, 9, 5)}, "id"))
    told = json.loads(file.path.read_text())
    del told["checksum"]
    told["places"]["0"]["offset"] = 4
    file.path.write_text(json.dumps(told))
    assert file.load().cursors[0].offset == 4
