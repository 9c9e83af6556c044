"""Files that a user names: whatever is at that name, it is read within bounds or refused; nothing waits for ever."""

from __future__ import annotations

import os
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lithify.errors import LithifyError, given_files
from lithify.errors.given_files import read_given
from lithify.kafka.publisher.group_offsets import parse_positions, read_positions
from lithify.kafka_client.properties import read_properties
from lithify.kafka_client.stores import check_stores
from lithify.pulsar.client import ClientConfig, conf_of
from lithify.pulsar.client.config import TOKEN
from lithify.pulsar.client.login.oauth2 import OAuth2
from lithify.pulsar.client.login.tls import Tls
from lithify.service.snapshot.position_file import PositionFile

PULSAR = "pulsar://h:1"
READERS: dict[str, Callable[[Path], Any]] = {
    "client.properties": read_properties,
    "truststore": lambda path: check_stores({"ssl.truststore.location": str(path)}),
    "keystore": lambda path: check_stores({"ssl.keystore.location": str(path)}),
    "positions of groups": read_positions,
    "client.conf": conf_of,
    "token": lambda path: ClientConfig.of(
        PULSAR, "http://h", {"authPlugin": TOKEN, "authParams": f"file://{path}"}
    ).login(),
    "credentials": lambda path: OAuth2("https://h", f"file://{path}").credentials(),
    "authorities": lambda path: Tls(trust_certs_file=str(path)).context(),
    "certificate": lambda path: Tls(certificate_file=str(path)).context(),
    "position of a consumer": lambda path: PositionFile(path, "lake", "kafka").load(),
}
"""Every file that is read because a user named it. `produce` reads from pipes, and as much as there is."""
READS_PIPES = ("client.properties", "positions of groups", "client.conf")


@pytest.fixture(autouse=True)
def is_not_waited_for_ever(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def late(*_: object) -> None:
        pytest.fail("it waits for ever", pytrace=True)

    monkeypatch.setattr(given_files, "PIPE_WAIT_S", 0.05)
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def a_folder(path: Path) -> str:
    path.mkdir()
    return "folder"


def a_silent_pipe(path: Path) -> str:
    os.mkfifo(path)
    return "pipe"


def an_endless_device(path: Path) -> str:
    path.symlink_to("/dev/zero")
    return "device"


def a_socket(path: Path) -> str:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(os.path.relpath(path))  # a full path may be too long for one
    return "socket"


def a_circle_of_links(path: Path) -> str:
    path.symlink_to(path)
    return "symbolic links"


@pytest.mark.parametrize("kind", [a_folder, a_silent_pipe, an_endless_device, a_socket, a_circle_of_links])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused_by_what_it_is(
    reader: str, kind: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "named"
    told = kind(path)
    with pytest.raises(LithifyError) as refused:
        READERS[reader](path)
    assert told in refused.value.message
    assert str(path) in refused.value.message
    assert len(refused.value.message) < 300


@pytest.mark.parametrize("reader", [name for name in READERS if name not in ("authorities", "certificate")])
def test_a_file_without_an_end_is_not_read_to_it(reader: str, tmp_path: Path) -> None:
    path = tmp_path / "named"
    with path.open("wb") as file:
        file.truncate(2**40)
    if reader in ("truststore", "keystore"):  # their first bytes say what they are
        READERS[reader](path)
        return
    with pytest.raises(LithifyError, match="larger than"):
        READERS[reader](path)


@pytest.mark.parametrize("reader", READS_PIPES)
def test_settings_may_come_through_a_pipe(reader: str, tmp_path: Path) -> None:
    """As with `--kafka-conf-file <(vault read ...)`: the password is on no disk."""
    text = b"g,t,0,1\n" if reader == "positions of groups" else b"brokerServiceUrl=pulsar://h:1\n"
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(text)
    os.mkfifo(pipe)

    def write() -> None:
        with pipe.open("wb", buffering=0) as writer:
            for n in range(len(text)):
                writer.write(text[n : n + 1])

    given_files.PIPE_WAIT_S = 30.0  # set back by the fixture
    writing = threading.Thread(target=write)
    writing.start()
    assert READERS[reader](pipe) == READERS[reader](file)
    writing.join()


def test_an_empty_file_is_empty_at_once_and_an_empty_pipe_when_its_writer_is_gone(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert read_given(tmp_path / "empty") == b""
    os.mkfifo(tmp_path / "pipe")
    given_files.PIPE_WAIT_S = 30.0
    writing = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(b""))
    writing.start()
    assert read_given(tmp_path / "pipe", pipes=True) == b""
    writing.join()


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_refused(name: str) -> None:
    with pytest.raises(OSError, match="this name is not valid for a file"):
        read_given(name)


@pytest.mark.parametrize(
    "line",
    ["x" * 10**6, f"g,t,0,{'9' * 5000}", f"g,t,0,{'x' * 90_000}", "g" * 90_000 + ",t,0,1\n" + "g" * 90_000 + ",t,0,2"],
)
def test_an_error_about_a_line_of_positions_is_short(line: str) -> None:
    with pytest.raises(ValueError, match=r"line [12]") as refused:
        parse_positions(line)
    assert len(str(refused.value)) < 400


def test_a_process_may_have_many_files_open(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, most[1]), most[1]))
    held: list[int] = []
    try:
        while not held or held[-1] < 1024:
            held.append(os.open(os.devnull, os.O_RDONLY))
        assert read_given(tmp_path / "empty") == b""
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, most)
