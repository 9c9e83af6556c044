"""What is true once Ctrl-C has ended a verb that commits: the last line of stderr says it.

before the commit   "interrupted: the logs of orders are as they were"
during it           the first Ctrl-C waits for its end; a second one ends the program at once:
                    "interrupted: whether orders was changed is not known; `lithify history orders` shows it"
after it            "interrupted: orders was changed, version 7"
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lithify.cli.invocation import Invocation
from lithify.cli.terminal.stopping import Interrupts, interrupts
from lithify.ports.engine import COMMIT

if TYPE_CHECKING:
    from lithify.ports.engine import Progress


class Work:
    """What a verb does to a topic, and how far it is; `look` is the command that shows what became of a commit."""

    def __init__(self, invocation: Invocation, name: str, look: str, taken: Interrupts) -> None:
        self._invocation, self._name, self._look, self._taken = invocation, name, look, taken
        self._commits = False

    def commit(self) -> None:
        """A commit begins."""
        self._commits = True
        self._invocation.standing = f"{self._name} may have been changed; {self._look} shows whether it was"
        self._taken.wait("until the commit has ended")

    def watched(self, progress: Progress) -> Progress:
        """`progress` of a round, which says when its commit begins."""

        def report(phase: str, done: int, total: int) -> None:
            if phase == COMMIT:
                self.commit()
            elif self._commits:  # it plans logs again that others have changed meanwhile; it has committed the rest
                self._commits = False
                self._invocation.standing = f"some logs of {self._name} may have been changed; {self._look} shows which"
                self._taken.go_on()
            progress(phase, done, total)

        return report

    def ended(self, version: int, *, changed: bool) -> None:
        """The commit has ended with this version, or there was nothing to commit."""
        name = self._name
        self._invocation.standing = f"{name} was changed, version {version}" if changed else f"{name} is unchanged"


@contextmanager
def interruptible(invocation: Invocation, name: str, *, look: str, before: str = "{} is unchanged") -> Iterator[Work]:
    """Notes what is true of a topic while a verb works on it; `before` says it until its commit begins."""
    with interrupts(lambda text: invocation.note("interrupted", text)) as taken:
        invocation.standing = before.format(name)
        yield Work(invocation, name, look, taken)


@contextmanager
def committing(invocation: Invocation, name: str) -> Iterator[Work]:
    """The same for a verb that commits right away."""
    with interruptible(invocation, name, look=f"`lithify status {name}`") as work:
        work.commit()
        yield work
