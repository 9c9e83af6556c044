"""An engine in whose rounds something happens on the way: a wire is cut, or others work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lithify.errors import LithifyError
from lithify.model.names import LogId
from lithify.ports.engine import PlannedLog, Progress, RewriteEngine, Rewrites, Round, RunLimits, Written
from lithify.rules.compaction.outcome import LogFindings


class PhasedEngine:
    """Calls what `happens` has for `open`, `key pass`, `rewrite` or `commit` just before it begins."""

    def __init__(self, engine: RewriteEngine, happens: Mapping[str, Callable[[], object]]) -> None:
        self._engine = engine
        self._happens = happens

    @contextmanager
    def open_round(
        self, logs: Sequence[PlannedLog], limits: RunLimits, run_id: str, progress: Progress
    ) -> Iterator[Any]:
        self._happens.get("open", bool)()
        with self._engine.open_round(logs, limits, run_id, progress) as round_:
            yield _PhasedRound(round_, self._happens)
        self._happens.get("commit", bool)()


class _PhasedRound:
    def __init__(self, round_: Round, happens: Mapping[str, Callable[[], object]]) -> None:
        self._round = round_
        self._happens = happens

    def find_survivors(self) -> Mapping[LogId, LogFindings | LithifyError]:
        self._happens.get("key pass", bool)()
        return self._round.find_survivors()

    def rewrite(self, rewrites: Rewrites) -> Written:
        self._happens.get("rewrite", bool)()
        return self._round.rewrite(rewrites)
