"""Log directories as a source, as far as no file of records is read: what is in use, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from lithify.errors import InvalidInputError, RefusedError, SourceWentBackError
from lithify.model.sources.source import IngestRequest, signs_of
from lithify.model.topic.log import LastRecord, LogState
from lithify.reports.ingest import IngestListener
from lithify.spark.kafka.directories.log_source import LogDirectories
from support.builders import a_topic
from support.kafka.batches import batch
from support.kafka.locked import locked


def source(*paths: Path) -> LogDirectories:
    def no_session() -> None:
        raise AssertionError("Spark is not needed yet")

    listener = IngestListener(lambda _batch: None, lambda _note: None, lambda: False)
    request = IngestRequest({}, ("orders",))
    return LogDirectories(no_session, paths, request, listener, lambda *_: {})  # type: ignore[arg-type]


def a_folder(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / f"{0:020}.log").touch()
    return path


def test_a_directory_in_use_is_refused_by_whatever_way_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, links = tmp_path / "logs", tmp_path / "links"
    folder = a_folder(logs / "orders-0")
    links.mkdir()
    for link in (links / "orders-0", tmp_path / "orders-0"):
        link.symlink_to(folder)
    monkeypatch.chdir(folder)
    with locked(logs):
        for path in (logs, folder, Path(), tmp_path / "orders-0", links):
            with pytest.raises(RefusedError, match=f"{logs} is in use by a broker"):
                source(path)
    for path in (logs, folder, Path(), tmp_path / "orders-0", links):
        assert source(path).topics(".*") == ("orders",)


def test_a_directory_that_is_taken_by_a_broker_is_noticed_after_a_batch(tmp_path: Path) -> None:
    a_folder(tmp_path / "orders-0")
    found = source(tmp_path)
    topic = found.topic("orders")
    with locked(tmp_path), pytest.raises(RefusedError, match="in use by a broker"):
        found.after_read(topic, None, ())  # type: ignore[arg-type]


def test_files_of_the_directory_above_do_not_matter(tmp_path: Path) -> None:
    """Unless it is the one that a broker has."""
    a_folder(tmp_path / "logs" / "orders-0")
    with locked(tmp_path):
        assert source(tmp_path / "logs").topics(".*") == ("orders",)


def test_what_is_wrong_with_small_files_is_told_with_their_names(tmp_path: Path) -> None:
    a_folder(tmp_path / "orders-0")
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    checkpoint.write_text("7\n")
    with pytest.raises(InvalidInputError, match=f"a checkpoint in it is damaged: {checkpoint}: its version"):
        source(tmp_path)
    checkpoint.unlink()
    checkpoint.mkdir()
    with pytest.raises(InvalidInputError, match=f"{checkpoint}: it is not a regular file"):
        source(tmp_path)


def continued(path: Path, notes: list[str], copy: LogState) -> None:
    listener = IngestListener(lambda _batch: None, lambda note: notes.append(note.text), lambda: False)
    request = IngestRequest({}, ("orders",))
    found = LogDirectories(lambda: None, [path], request, listener, lambda *_: {})  # type: ignore[arg-type,return-value]
    found.continuations(found.topic("orders"), a_topic(copy))


def test_files_of_an_earlier_leader_do_not_continue_a_copy(tmp_path: Path) -> None:
    """Its records behind the end of the copy may be those that the cluster has left out."""
    folder, notes = a_folder(tmp_path / "orders-0"), list[str]()
    (folder / f"{0:020}.log").write_bytes(b"".join(batch(n, b"v", epoch=3) for n in range(4)))

    def copied(end: int, epoch: int) -> LogState:
        _, checksum = signs_of(1, b"k", b"v")
        last = LastRecord(end - 1, 1)
        return LogState(0, log_end_offset=end, source_epoch=epoch, last_record=last, source_last=(end - 1, checksum))

    for end, epoch in ((2, 3), (4, 4)):
        continued(tmp_path, notes, copied(end, epoch))
    with pytest.raises(SourceWentBackError, match=r"was read in leader epoch 4, and the latest one of .*orders-0 is 3"):
        continued(tmp_path, notes, copied(2, 4))
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n4 9\n")
    continued(tmp_path, notes, copied(2, 4))
    assert not [text for text in notes if "a cleaner" in text]


def test_deletes_that_a_cleaner_may_have_taken_behind_the_end_of_a_copy_are_told(tmp_path: Path) -> None:
    folder, notes = a_folder(tmp_path / "orders-0"), list[str]()
    (folder / f"{0:020}.log").write_bytes(b"".join(batch(n, b"v") for n in (0, 3)))
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 3\n")
    for end in (0, 3, 2):
        notes.clear()
        continued(tmp_path, notes, LogState(0, log_end_offset=end))
        assert bool([text for text in notes if "deletes behind its end may be missing" in text]) == (end == 2)
