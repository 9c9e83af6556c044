"""Services that are paused together, each at a port call of its own, and continue in any order.

one    load ─► list ─┤ paused ├──────────────────────────────► fence, delete
two      load ─► write ─┤ paused ├─────────────────────────────────► commit
three                       load … fence ─┤ paused ├────────────────────► delete
"""

from __future__ import annotations

from threading import Event, Thread

from lithify.errors import LithifyError
from lithify.ports.store import Warehouse
from support.faults.ports import Freezer, Verb, faulty

PATIENCE_S = 60.0


class Standing:
    """A service that is paused right before its `at`-th port call, unless it ends before it."""

    def __init__(self, verb: Verb, warehouse: Warehouse, at: int) -> None:
        self.warehouse = warehouse
        self.refused: LithifyError | None = None
        self._defect: BaseException | None = None
        self._stands, self._goes_on = Event(), Event()
        self._freezer = Freezer(at, self._stand)
        self._thread = Thread(target=self._run, args=(verb, faulty(warehouse, self._freezer)), daemon=True)
        self._thread.start()
        assert self._stands.wait(PATIENCE_S)

    @property
    def reached(self) -> bool:
        """Whether it was paused."""
        return self._freezer.reached

    @property
    def calls(self) -> int:
        """How many it has made so far."""
        return len(self._freezer.calls)

    @property
    def where(self) -> str:
        return f"at call {self._freezer.at} ({self._freezer.calls[-1]})"

    def go_on(self) -> None:
        """Runs to its end."""
        self._goes_on.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        if self._defect is not None:
            raise self._defect

    def _stand(self) -> None:
        self._stands.set()
        assert self._goes_on.wait(PATIENCE_S)

    def _run(self, verb: Verb, warehouse: Warehouse) -> None:
        try:
            verb(warehouse)
        except LithifyError as error:
            self.refused = error
        except BaseException as error:
            self._defect = error
        finally:
            self._stands.set()
