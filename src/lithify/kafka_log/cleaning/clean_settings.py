"""The settings of a topic that a cleaner goes by, under Kafka's names. A log directory does not have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from lithify.errors import RefusedError
from lithify.model.settings.units import parse_duration_ms, parse_size_bytes

POLICY: Final = "cleanup.policy"
LARGEST_FILE_BYTES: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """With the defaults of a broker."""

    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    segment_bytes: int = 2**30
    segment_index_bytes: int = 10 * 2**20
    index_interval_bytes: int = 4096


_NAMES: Final = {name.replace("_", "."): name for name in CleanSettings.__slots__}


def clean_settings(config: Mapping[str, str]) -> CleanSettings:
    """Raises `RefusedError`: for names, for values, and if it is not given that the topics are compacted."""
    policy = config.get(POLICY)
    if policy is None:
        raise RefusedError(
            f"a log directory does not have the {POLICY} of its topics",
            hint=f"if they are compacted, give {POLICY}=compact, and the other settings that they have",
        )
    if "compact" not in [word.strip() for word in policy.split(",")]:
        raise RefusedError(f"{POLICY}={policy}: only topics with compact in it are cleaned")
    given = {name: value for name, value in config.items() if name != POLICY}
    if unknown := sorted(given.keys() - _NAMES.keys()):
        raise RefusedError(
            f"{unknown[0]} is not a setting that a cleaner goes by",
            hint=f"give some of {', '.join(sorted([POLICY, *_NAMES]))}",
        )
    return replace(CleanSettings(), **{_NAMES[name]: _number(name, value) for name, value in given.items()})


def _number(name: str, value: str) -> int:
    try:
        number = (parse_duration_ms if name.endswith(".ms") else parse_size_bytes)(value)
    except ValueError as error:
        raise RefusedError(f"{name}: {error}") from None
    if number < 0:
        raise RefusedError(f"{name}={value}: it cannot be below zero")
    if name.endswith("bytes") and number > LARGEST_FILE_BYTES:
        raise RefusedError(f"{name}={value}: at most {LARGEST_FILE_BYTES}, as a broker opens no larger file")
    return number
