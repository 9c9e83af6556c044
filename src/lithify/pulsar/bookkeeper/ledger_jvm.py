"""The JVM that communicates with BookKeeper: started, called over its pipes, and ended.

    requests  [size, 4][operation, 1][what it needs] ──► stdin  ┌─────┐
    answers   [size, 4][0: done, 1: failed][what it tells] ◄── stdout │ JVM │  Ledgers.java, compiled at the start
    what its libraries say ◄── stderr, the last lines of it     └─────┘

The Java source is a resource of this package; Janino, which comes with PySpark, compiles it, so a JRE is
enough. Every wait has a deadline, after which the JVM is killed. It ends by itself when its stdin does.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from threading import Thread
from typing import IO, Final

from lithify.errors import BrokerError, ConnectorError, UnusableEnvironmentError
from lithify.waits.deadline import Deadline

GREETING: Final = b"LITH"
ANSWER_BYTES: Final = 300 << 20
"""A page of entries is of some 2 MiB, unless one entry alone is larger."""
WRITE_BYTES: Final = 1 << 20
PIPE_BYTES: Final = 1 << 20
START_S: Final = 60.0
END_S: Final = 10.0
LAST_LINES: Final = 30
LINE_BYTES: Final = 2000
IN_A_TRACE: Final = ("at ", "... ")
"""Lines that say where in Java an error came up; there are hundreds, and what it is stands before them."""
CHATTER: Final = re.compile(r"[ \[-](INFO|DEBUG|TRACE)[ \]-]")
"""In lines of a log that report no error, near their beginning."""
CHATTER_CHARACTERS: Final = 60

NEEDED: Final = ("bookkeeper-server", "pulsar-metadata")
COMPILER: Final = ("janino", "commons-compiler")
OPTIONS: Final = (
    "-Xmx256m",
    "-XX:MaxDirectMemorySize=256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # it lives for seconds: starts in two thirds of the time, and writes no slower
    "-Djava.net.preferIPv4Stack=true",
    "-Dbookkeeper.metadata.client.drivers=org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver",
    # Errors alone, without the 500 classes that set up a log: a fifth of the start.
    "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
)

_SIZE: Final = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class JavaParts:
    """What the JVM is made of: a `java` of 17 or later, Pulsar's jars, and PySpark's, which has the compiler."""

    java: Path
    pulsar_jars: Path
    pyspark_jars: Path

    def class_path(self) -> str:
        """Raises `ConnectorError`, which names what is missing."""
        compiler = [_only(self.pyspark_jars, name, "PySpark's jars") for name in COMPILER]
        for name in NEEDED:
            _only(self.pulsar_jars, name, "Pulsar's jars")
        return os.pathsep.join((*map(str, compiler), f"{self.pulsar_jars}/*"))


class LedgerJvm:
    """Started. Any failure of the JVM itself kills it, and each later call raises the reason."""

    def __init__(self, parts: JavaParts, metadata_uri: str, ledgers_path: str, answer_s: float) -> None:
        """Raises `ConnectorError`, `UnusableEnvironmentError`, or `BrokerError` if there is no such cluster."""
        self._answer_s = answer_s
        self._failure = ""
        self._hint = f"check that the jars in {parts.pulsar_jars} are complete and all of the same Pulsar version"
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        class_path = parts.class_path()
        with as_file(files(__package__) / "Ledgers.java") as source:
            compiled = ("org.codehaus.janino.SimpleCompiler", str(source), "Ledgers")
            arguments = (metadata_uri, ledgers_path, str(max(1, int(answer_s))))
            try:
                self._process = subprocess.Popen(
                    [str(parts.java), *OPTIONS, "-cp", class_path, *compiled, *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    process_group=0,  # a Ctrl-C is for this process, which may have a ledger to delete
                )
            except OSError as error:
                raise UnusableEnvironmentError(f"{parts.java} cannot be started: {error}") from error
            self._stdin, self._stdout, errors = _pipes(self._process)
            self._listener = Thread(target=self._listen, args=(errors,), daemon=True)
            self._listener.start()
            try:
                self._greeted(Deadline(START_S + answer_s))
            except BaseException:
                self.end()
                raise

    @property
    def is_usable(self) -> bool:
        """Whether it runs and has not failed."""
        return not self._failure and self._process.poll() is None

    def ask(self, operation: bytes, *parts: bytes) -> bytes:
        """What it tells. Raises `BrokerError` if BookKeeper refuses or does not answer."""
        self.send(operation, *parts)
        return self.answer()

    def send(self, operation: bytes, *parts: bytes) -> None:
        """A request, whose response comes after the responses to the requests before."""
        deadline = Deadline(self._answer_s * 2)  # the JVM itself waits so long for bookies before it reads on
        size = 1 + sum(map(len, parts))
        for data in (_SIZE.pack(size) + operation, *parts):
            self._write(memoryview(data), deadline)

    def answer(self) -> bytes:
        """The answer to the oldest request that has none yet."""
        deadline = Deadline(self._answer_s * 3)
        (size,) = _SIZE.unpack(self._read(4, deadline))
        if not 1 <= size <= ANSWER_BYTES:
            raise self._broken(f"it printed something other than answers: a size of {size} bytes")
        answer = self._read(size, deadline)
        if answer[0] != 0:
            reason = answer[1:].decode(errors="replace")
            raise BrokerError(f"BookKeeper refused or did not answer: {reason}", hint="check that the bookies run")
        return answer[1:]

    def end(self) -> None:
        """Ends it, in bounded time; what is on its way is given up."""
        self._failure = self._failure or "it was stopped"
        for pipe in (self._stdin, self._stdout):  # also if it waits for us to read more
            with suppress(OSError):
                pipe.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(END_S)

    def _greeted(self, deadline: Deadline) -> None:
        (size,) = _SIZE.unpack(self._read(4, deadline))
        if not 1 <= size <= ANSWER_BYTES:
            raise self._broken("it printed something other than a greeting")
        greeting = self._read(size, deadline)
        if greeting[0] != 0:
            hint = "check the URL of the metadata store, and that it can be reached from here"
            raise BrokerError(
                f"the client of BookKeeper cannot start: {greeting[1:].decode(errors='replace')}", hint=hint
            )
        if greeting[1:] != GREETING:
            raise self._broken("it has another version")
        self._hint = "try again: that starts another JVM"

    def _write(self, data: memoryview, deadline: Deadline) -> None:
        self._must_be_there()
        while data:
            try:
                data = data[os.write(self._stdin.fileno(), data[:WRITE_BYTES]) :]
            except BlockingIOError:
                self._wait(self._stdin, select.POLLOUT, deadline)
            except OSError as error:
                raise self._broken("it has died") from error

    def _read(self, size: int, deadline: Deadline) -> bytes:
        self._must_be_there()
        read = bytearray(size)
        left = memoryview(read)
        while left:
            try:
                more = os.readv(self._stdout.fileno(), [left])
            except BlockingIOError:
                self._wait(self._stdout, select.POLLIN, deadline)
                continue
            if not more:
                raise self._broken("it has died")
            left = left[more:]
        return bytes(read)

    def _must_be_there(self) -> None:
        if self._failure:
            raise UnusableEnvironmentError(f"the JVM for BookKeeper has ended: {self._failure}")

    def _wait(self, pipe: IO[bytes], event: int, deadline: Deadline) -> None:
        poll = select.poll()
        poll.register(pipe, event)
        try:
            while not poll.poll(deadline.left_s() * 1000):
                continue
        except TimeoutError as error:
            raise self._broken(f"it does not answer: {error}") from error

    def _broken(self, why: str) -> UnusableEnvironmentError:
        """Kills it, with the last that it said."""
        self._failure = why
        self._process.kill()
        self._process.wait()
        self._listener.join(END_S)
        lines = " / ".join(self._last_lines)
        return UnusableEnvironmentError(
            f"the JVM for BookKeeper failed: {why}" + (f"; its last lines are: {lines}" if lines else ""),
            hint=self._hint,
        )

    def _listen(self, errors: IO[bytes]) -> None:
        with errors:
            while line := errors.readline(LINE_BYTES):
                text = line.decode(errors="replace").strip()
                if text and not text.startswith(IN_A_TRACE) and not CHATTER.search(text[:CHATTER_CHARACTERS]):
                    self._last_lines.append(text)


def _only(folder: Path, name: str, what: str) -> Path:
    jars = sorted(folder.glob(f"{name}-[0-9]*.jar"))
    if not jars:
        hint = "give Pulsar's `lib` folder, or one that Maven fills with pulsar-metadata and its dependencies"
        raise ConnectorError(f"{what} in {folder} lack {name}", hint=hint)
    return jars[-1]


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert process.stdin and process.stdout and process.stderr
    for pipe in (process.stdin, process.stdout):
        os.set_blocking(pipe.fileno(), False)
        with suppress(AttributeError, OSError):  # only Linux can, and not if the user has many large pipes
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return process.stdin, process.stdout, process.stderr
