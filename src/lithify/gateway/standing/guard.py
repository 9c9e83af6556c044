"""Runs one command, and ends it with all its processes in time: a small program between a gateway and a job's process.

    gateway ── stdin: `until MS`, `stop MS` ──► guard ──► command ──► its own processes
            ◄───────────── stdout, stderr of the command, the exit code

    python guard.py GRACE_MS MARGIN_MS UNTIL_MS COMMAND...

`until` is the end of the gateway's lease, by the clock that all processes of a machine share. The command gets SIGTERM
GRACE_MS and MARGIN_MS before it, and all its processes get SIGKILL MARGIN_MS before it, unless the gateway sends a
later one. So the job has ended when another gateway may begin it, even where this one is frozen, or its database away.
`stop` is SIGTERM now, and SIGKILL after so many ms. The end of stdin is the end of the gateway: then they have
`ORPHANED_MS`.

Linux sends SIGKILL to the command if this process is killed, and makes it the parent of processes that the command
leaves behind. They have `LEFT_MS` to end too, as Spark's JVM deletes its files once its program has ended. It imports
nothing but the standard library, as it starts with each run.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress

ORPHANED_MS = 2_000
LEFT_MS = 5_000
POLL_S = 0.1
"""Between two tries to kill what does not end at once."""
LONGEST_WAIT_MS = 60_000
NOT_STARTED = 127
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_NEVER = 1 << 62
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def steady_ms() -> int:
    """The clock of leases: it counts suspended time where the system has such a clock."""
    return time.clock_gettime_ns(_STEADY) // 1_000_000


def processes(session: int | None = None, below: int | None = None) -> list[int]:
    """The processes of a session, or the descendants of a process; none where there is no /proc."""
    parents, sessions = _parents_and_sessions()
    if below is None:
        return [pid for pid, its in sessions.items() if its == session]
    found = []
    for pid, parent in parents.items():
        above, seen = parent, {pid}
        while above in parents and above != below and above not in seen:
            seen.add(above)
            above = parents[above]
        if above == below:
            found.append(pid)
    return found


def _parents_and_sessions() -> tuple[dict[int, int], dict[int, int]]:
    """By process; zombies too, which wait for their parents."""
    parents, sessions = {}, {}
    with suppress(FileNotFoundError):
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - pathlib takes as long as this program
            with suppress(OSError, ValueError, IndexError):
                file = os.open(f"/proc/{name}/stat", os.O_RDONLY)
                try:
                    fields = os.read(file, 4096).rpartition(b") ")[2].split()
                finally:
                    os.close(file)
                parents[int(name)], sessions[int(name)] = int(fields[1]), int(fields[3])
    return parents, sessions


def kill(pids: list[int]) -> None:
    """Kills processes; some may have ended meanwhile."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


class Guard:
    """One command."""

    def __init__(self, grace_ms: int, margin_ms: int, until_ms: int, command: list[str]) -> None:
        self._grace_ms, self._margin_ms, self._until_ms = grace_ms, margin_ms, until_ms
        self._terminates_ms = self._kills_ms = _NEVER
        """By a request; the lease may end before."""
        self._terminated = False
        self._code: int | None = None
        self._unread: bytes | None = b""
        """None after the end of stdin."""
        self._wakes = _wakes_on_children()
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        self._command, self._pid = command, 0

    def run(self) -> int:
        """Returns the exit code of the command, once all its processes have ended.

        It is not started after its time, nor without its gateway: one that was frozen may have begun this program.
        """
        while self._unread is not None and select.select([0], [], [], 0)[0]:
            self._obey()
        if self._unread is None or steady_ms() >= self._until_ms - self._margin_ms - self._grace_ms:
            return NOT_STARTED
        self._pid = _started(self._command)
        while self._code is None:
            self._steps(self._wait_ms() / 1000)
        left_ms = steady_ms() + LEFT_MS
        while pids := processes(below=os.getpid()):
            if steady_ms() >= min(left_ms, self._ends()[1]):
                kill(pids)
            self._steps(POLL_S)
        return self._code

    def _steps(self, wait_s: float) -> None:
        readable = [self._wakes] if self._unread is None else [self._wakes, 0]
        ready, _, _ = select.select(readable, [], [], wait_s)
        if self._wakes in ready:
            os.read(self._wakes, 4096)
        if 0 in ready:
            self._obey()
        self._reap()
        if self._code is not None:
            return
        now_ms = steady_ms()
        if now_ms >= self._ends()[0] and not self._terminated:
            self._terminated = True
            with suppress(OSError):
                os.kill(self._pid, signal.SIGTERM)
        if now_ms >= self._ends()[1]:
            kill([self._pid, *processes(below=os.getpid())])

    def _ends(self) -> tuple[int, int]:
        """When the command gets SIGTERM, and SIGKILL."""
        last_ms = self._until_ms - self._margin_ms
        return min(self._terminates_ms, last_ms - self._grace_ms), min(self._kills_ms, last_ms)

    def _wait_ms(self) -> int:
        terminates_ms, kills_ms = self._ends()
        left_ms = (kills_ms if self._terminated else terminates_ms) - steady_ms()
        return min(left_ms, LONGEST_WAIT_MS) if left_ms > 0 else round(POLL_S * 1000)

    def _obey(self) -> None:
        data = os.read(0, 4096)
        if not data:
            self._unread = None
            self._stop(ORPHANED_MS)
            return
        *lines, self._unread = ((self._unread or b"") + data).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"until":
                self._until_ms = max(self._until_ms, int(number))
            elif word == b"stop":
                self._stop(int(number))

    def _stop(self, within_ms: int) -> None:
        now_ms = steady_ms()
        self._terminates_ms = min(self._terminates_ms, now_ms)
        self._kills_ms = min(self._kills_ms, now_ms + within_ms)

    def _reap(self) -> None:
        """Takes the exit codes of the command and of those that it has left behind."""
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                if ended[0] == self._pid:
                    code = os.waitstatus_to_exitcode(ended[1])
                    self._code = code if code >= 0 else 128 - code


def _wakes_on_children() -> int:
    """What can be read when a child has ended, or a signal has come: SIGTERM and SIGINT are the gateway's to send on.

    Handlers, as a command would inherit that signals are ignored.
    """
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in _SIGNALS:
        signal.signal(number, lambda _number, _frame: None)
    return read_end


def _started(command: list[str]) -> int:
    """The process of the command."""
    guard = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # else one that comes before `execvp` would be this program's
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        return pid
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(NOT_STARTED)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvp(command[0], command)
    except BaseException as error:
        os.write(2, f"{command[0]} cannot be started: {error}\n".encode(errors="replace"))
    os._exit(NOT_STARTED)


def _prctl(option: int, value: int) -> None:
    """Linux only: elsewhere the pipe from the gateway has to do."""
    if sys.platform != "linux":
        return
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(Guard(int(given[0]), int(given[1]), int(given[2]), given[3:]).run())
