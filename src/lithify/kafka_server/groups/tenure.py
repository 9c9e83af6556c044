"""What a gateway holds of groups: the right to coordinate one, and to commit in the partitions that its members read.

    GROUP/coordinator@SCOPE      one gateway coordinates the group: the others wait, or are told to
    GROUP/STREAM/TOPIC/0@SCOPE   the lease of a partition, as members of the lake's own groups hold it (C58)

Both are among the leases of groups, as a group is one thing, read by Kafka's clients or with Lithify. Positions are
committed only in a transaction that finds the lease of the partition (`Groups.commit`). So a gateway that was frozen
while another one took over commits nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from threading import Lock

from lithify.coordination.leases.keeper import LeaseKeeper
from lithify.kafka_server.groups.committed import Place
from lithify.kafka_server.groups.gateways import LEASE_MS, RENEW_MS
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId
from lithify.ports.clock import Clock
from lithify.ports.groups import Groups

LOOK_MS = 3_000
"""Time between two checks of the leases of all groups."""
_COORDINATOR = "coordinator"


class Others(Enum):
    """Whether a group has members that read with Lithify: they share partitions without a coordinator."""

    NONE = "there are none"
    PERHAPS = "leases of some are there, which may have ended"
    SOME = "some renew their leases"


class Tenure:
    """Methods wait for the database and may be called by several threads, but for each group by one at a time.

    `holds` and `others` wait for nothing.
    """

    def __init__(self, groups: Groups, owner: str, clock: Clock) -> None:
        self.owner = owner
        self._scope, self._clock = groups.scope, clock
        self._keeper = LeaseKeeper(groups.leases, owner, LEASE_MS, clock.monotonic_ms)
        self._partitions: dict[str, set[str]] = {}
        """By group, names of the leases of partitions that it has taken."""
        self._positions: dict[str, Position | None] = {}
        """By the lease of its partition, what is stored; None if nothing is. Others cannot change it meanwhile."""
        self._begun: dict[str, dict[Place, Cursor]] = {}
        """By group and the name that members use, the log as it was when one first asked for its offset; at 0, as it
        may read from anywhere. The name may be another topic's since."""
        self._lock = Lock()
        self._unchecked: dict[str, dict[LogId, Cursor]] = {}
        """By group, where those have begun that have committed since, in logs that are to be checked again."""
        self._others: dict[str, Others] = {}
        self._renewed_ms = self._looked_ms = clock.monotonic_ms()

    def beat(self) -> None:
        """Renews its leases, and checks which leases others hold, when it is time. Raises `CoordinationError`."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._renewed_ms >= RENEW_MS:
            self._renewed_ms = now_ms
            if (error := self._keeper.renew().error) is not None:
                raise error
        if now_ms - self._looked_ms >= LOOK_MS:
            self.look()

    def look(self) -> None:
        """Raises `CoordinationError`."""
        self._looked_ms = self._clock.monotonic_ms()
        self._keeper.observe()
        suffix, others = f"@{self._scope}", dict[str, Others]()
        for name, lease in self._keeper.watched().items():
            group, _, rest = name.partition("/")
            if name.endswith(suffix) and rest != f"{_COORDINATOR}{suffix}" and lease.left_ms > 0:
                known = others.get(group, Others.NONE)
                others[group] = Others.SOME if lease.renewed or known is Others.SOME else Others.PERHAPS
        self._others = others

    def holds(self, group: str) -> bool:
        """Whether it certainly coordinates the group."""
        return self._keeper.holds(self._name(group))

    def others(self, group: str) -> Others:
        """As of the last look. Leases of partitions that another gateway holds count, until it has given them up."""
        return self._others.get(group, Others.NONE)

    def acquire(self, group: str) -> bool:
        """Becomes the coordinator of a group unless another gateway is. Raises `CoordinationError`."""
        if self.holds(group):
            return True
        self.look()
        if not self._keeper.take([self._name(group)]):
            return False
        self._begun.pop(group, None)
        left = {name for name in self._of(group) if name not in self._partitions.get(group, ())}
        self._note_taken(group, self._keeper.take(left))
        return True

    def hold(self, group: str, logs: Collection[LogId]) -> frozenset[LogId]:
        """Takes the leases of these logs; returns those that another one has, all of them if it has lost the group.

        It may have been frozen since its caller checked that, while another gateway had the group and gave it up.
        """
        names = {self._lease(group, log): log for log in logs}
        wanted = {name for name in names if not self._keeper.holds(name)}
        taken = self._keeper.take(wanted)
        if not self.holds(group):
            self._keeper.release(taken)
            return frozenset(logs)
        self._note_taken(group, taken)
        return frozenset(names[name] for name in wanted - taken)

    def stored(self, group: str, logs: Collection[LogId]) -> dict[LogId, Position | None] | None:
        """The positions in these logs, as this gateway has stored or read them since it took their leases.

        None if it does not hold all leases, or does not know all positions.
        """
        names = {self._lease(group, log): log for log in logs}
        if not all(name in self._positions and self._keeper.holds(name) for name in names):
            return None
        return {log: self._positions[name] for name, log in names.items()}

    def note_stored(self, group: str, positions: Mapping[LogId, Position | None]) -> None:
        """These are stored, in logs whose leases it holds."""
        self._positions |= {self._lease(group, log): position for log, position in positions.items()}

    def forget_stored(self, group: str, logs: Collection[LogId]) -> None:
        """It is not certain any more what is stored there."""
        for log in logs:
            self._positions.pop(self._lease(group, log), None)

    def begins(self, group: str, cursors: Mapping[Place, Cursor]) -> None:
        """Members are about to read there. Of a topic that was not recreated since, the first time counts."""
        begun = self._begun.setdefault(group, {}) if cursors and self.holds(group) else {}
        for place, cursor in cursors.items():
            known = begun.get(place)
            if known is None or known.identity != cursor.identity:
                begun[place] = cursor

    def begun(self, group: str, place: Place) -> Cursor | None:
        """The log as members began to read it; None if that is not known."""
        return self._begun.get(group, {}).get(place)

    def holds_log(self, group: str, log: LogId) -> bool:
        """Whether it certainly has the lease of a partition."""
        return self._keeper.holds(self._lease(group, log))

    def note_unchecked(self, group: str, cursors: Mapping[LogId, Cursor]) -> None:
        """The logs may have been read in later versions than this gateway knows. What is noted already stays."""
        with self._lock:
            self._unchecked[group] = {**cursors, **self._unchecked.get(group, {})}

    def take_unchecked(self) -> Mapping[str, Mapping[LogId, Cursor]]:
        """What was noted since the last call."""
        with self._lock:
            taken, self._unchecked = self._unchecked, {}
        return taken

    def give_up(self, group: str) -> None:
        """Gives up the group, for another gateway."""
        names = self._partitions.pop(group, set())
        self._forget(names)
        self._begun.pop(group, None)
        self._unchecked.pop(group, None)
        self._keeper.release([*names, self._name(group)])

    def leave(self) -> None:
        """Gives up all groups."""
        for known in (self._partitions, self._positions, self._begun, self._unchecked):
            known.clear()
        self._keeper.leave()

    def _note_taken(self, group: str, names: Collection[str]) -> None:
        self._forget(names)  # another owner may have changed it
        self._partitions.setdefault(group, set()).update(names)

    def _forget(self, names: Collection[str]) -> None:
        for name in names:
            self._positions.pop(name, None)

    def _of(self, group: str) -> Iterator[str]:
        """Leases of the group's partitions that nobody renews."""
        for name, lease in self._keeper.watched().items():
            if name.startswith(f"{group}/") and name.endswith(f"@{self._scope}") and lease.left_ms <= 0:
                yield name

    def _lease(self, group: str, log: LogId) -> str:
        return GroupTopic(self._scope, group, log.topic).partition(log.partition)

    def _name(self, group: str) -> str:
        return f"{group}/{_COORDINATOR}@{self._scope}"
