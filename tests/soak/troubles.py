"""What happens to the cleaners of a soak: one at a time is killed, or once frozen past its lease.

    kill      SIGKILL of program, JVM and workers while it works on topics; started again with the same id
    freeze    SIGSTOP for longer than a lease, then SIGCONT: it must not go on where others have taken over

What the killed one had leases of is watched until another one has it, or it is given back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from soak.outages import Outages
from soak.programs import Program

WAITS_FOR_WORK_S = 10.0
"""For a moment in which the victim works on a topic."""

Leases = Callable[[], Mapping[str, str]]
"""By name of a lease, its owner."""


@dataclass(slots=True)
class Strike:
    """One kill or freeze, and when what the victim had was taken over. Times are epoch ms."""

    cleaner: str
    kind: str
    time_ms: int
    held: tuple[str, ...]
    """Identities of the topics that it worked on."""
    thawed_ms: int | None = None
    taken_over_s: dict[str, float] = field(default_factory=dict)

    def watch(self, now_ms: int, leases: Mapping[str, str], owner: str) -> None:
        for name in self.held:
            if name not in self.taken_over_s and leases.get(name) != owner:
                self.taken_over_s[name] = (now_ms - self.time_ms) / 1000


@dataclass(slots=True)
class Troubles:
    """Makes them, from `tick` to `tick`."""

    cleaners: Sequence[Program]
    leases: Leases
    every_s: float
    first_s: float
    freezes_for_s: float
    freeze_at: int
    """Which of the strikes is a freeze, from 0; none if it is negative."""
    outages: Outages
    strikes: list[Strike] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    _owners: dict[int, str] = field(default_factory=dict)
    _begun_s: float = field(default_factory=time.monotonic)

    def tick(self, *, strikes: bool = True) -> None:
        """Does what it is time for; to be called several times a second."""
        leases = self.leases()
        for number, strike in enumerate(self.strikes):
            strike.watch(_now_ms(), leases, self._owners[number])
        self._thaw()
        for cleaner in self.cleaners:
            if not cleaner.is_running:
                self.findings += filter(None, [self.outages.restart(cleaner)])
        if strikes and not any(cleaner.frozen for cleaner in self.cleaners):
            self._strike(leases)

    def thaw_all(self) -> None:
        for cleaner in self.cleaners:
            if cleaner.frozen:
                self._thaw_one(cleaner)

    def _strike(self, leases: Mapping[str, str]) -> None:
        number = len(self.strikes)
        waited_s = time.monotonic() - self._begun_s - self.first_s - number * self.every_s
        if waited_s < 0:
            return
        victim = self.cleaners[number % len(self.cleaners)]
        owners = [owner for name, owner in leases.items() if name == f"cleaner:{victim.name}"]
        owner = owners[0] if owners else ""
        held = tuple(name for name, its in leases.items() if its == owner and ":" not in name)
        if not held and waited_s < WAITS_FOR_WORK_S:
            return
        kind = "freeze" if number == self.freeze_at else "kill"
        self.strikes.append(Strike(victim.name, kind, _now_ms(), held))
        self._owners[number] = owner
        if kind == "freeze":
            victim.freeze()
        else:
            victim.kill()
            victim.start()

    def _thaw(self) -> None:
        for strike in self.strikes:
            is_frozen = strike.kind == "freeze" and strike.thawed_ms is None
            if is_frozen and _now_ms() >= strike.time_ms + self.freezes_for_s * 1000:
                self._thaw_one(next(c for c in self.cleaners if c.name == strike.cleaner))

    def _thaw_one(self, cleaner: Program) -> None:
        cleaner.thaw()
        for strike in self.strikes:
            if strike.cleaner == cleaner.name and strike.kind == "freeze":
                strike.thawed_ms = _now_ms()


def _now_ms() -> int:
    return time.time_ns() // 10**6
