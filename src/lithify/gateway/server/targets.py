"""The objects of the Python API whose methods the operations call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from lithify.api.lake import Lake
from lithify.gateway.operations.operation import Operation, Target


@dataclass(frozen=True, slots=True)
class Targets:
    """A lake, and the database that its gateways share; None for the default of `Lake.group`."""

    lake: Lake
    coordination_url: str | None = None

    def called(self, operation: Operation, given: Mapping[str, Any], listeners: Mapping[str, Any] | None = None) -> Any:
        """What its method returns; of the arguments and listeners it gets those that it takes."""
        function = getattr(self._target(operation.of, given), operation.call)
        known = {"coordination_url": self.coordination_url, **(listeners or {}), **given}
        return function(**{name: known[name] for name in _parameters(operation) if name in known})

    def _target(self, kind: Target, given: Mapping[str, Any]) -> Any:
        shared = {"coordination_url": self.coordination_url}
        match kind:
            case Target.LAKE:
                return self.lake
            case Target.TOPIC:
                return self.lake.topic(given["topic"])
            case Target.STREAM:
                return self.lake.stream(given["stream"])
            case Target.GROUP:
                return self.lake.group(given["group"], **shared)
            case Target.REPLICAS:
                return self.lake.replicas(**shared)
            case Target.STANDING_JOBS:
                return self.lake.standing_jobs(**shared)


@cache
def _parameters(operation: Operation) -> tuple[str, ...]:
    """The arguments of its method, by name."""
    return tuple(inspect.signature(operation.function()).parameters)
