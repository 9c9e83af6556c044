"""The settings of a topic that a cleaner goes by, under Kafka's names: what its cluster states, and what is given.

stated in the metadata log      given      Kafka's default
         ╰ cleanup.policy: what is stated decides
         ╰ the others: what is given counts, but no shorter time than what is stated
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lithify.errors import RefusedError
from lithify.kafka_log.cleaning.cluster_configs import OF_BROKERS
from lithify.model.settings.units import parse_duration_ms, parse_size_bytes

POLICY: Final = "cleanup.policy"
METADATA_DIR: Final = "metadata.log.dir"
LARGEST_FILE_BYTES: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CleanSettings:
    """With the defaults of a broker."""

    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    segment_bytes: int = 2**30
    segment_index_bytes: int = 10 * 2**20
    index_interval_bytes: int = 4096
    producer_id_expiration_ms: int = 86_400_000
    is_stated: bool = False
    """Whether the cluster states that the topic is compacted."""


_NAMES: Final = {name: name.replace(".", "_") for name in OF_BROKERS if name != POLICY}


def check_given(config: Mapping[str, str]) -> None:
    """Raises `RefusedError` for names and values that nothing can have."""
    if unknown := sorted(config.keys() - {POLICY, METADATA_DIR, *_NAMES}):
        raise RefusedError(
            f"{unknown[0]} is not a setting that a cleaner goes by",
            hint=f"give some of {', '.join(sorted([POLICY, METADATA_DIR, *_NAMES]))}",
        )
    for name in config.keys() & _NAMES.keys():
        _number(name, config[name])
    if POLICY in config:
        _check_compacted(f"{POLICY}={config[POLICY]}", config[POLICY])


def clean_settings(topic: str, given: Mapping[str, str], stated: Mapping[str, str]) -> CleanSettings:
    """Of what `check_given` has passed. Raises `RefusedError` unless the topic is compacted."""
    if POLICY in stated:
        _check_compacted(f"{topic}: the metadata log of its cluster says {POLICY}={stated[POLICY]}", stated[POLICY])
    elif POLICY not in given:
        raise RefusedError(
            f"{topic}: no metadata log states its {POLICY}, so it has the policy of its broker: delete, by default",
            hint=f"if {OF_BROKERS[POLICY]} of the broker has compact in it, give {POLICY}=compact; if the metadata "
            f"log is in another directory, name that with {METADATA_DIR}",
        )
    found = {name: _number(name, value) for name, value in stated.items() if name != POLICY}
    for name in given.keys() & _NAMES.keys():
        number = _number(name, given[name])
        if name.endswith(".ms") and number < found.get(name, 0):
            raise RefusedError(
                f"{name}={given[name]}: {topic} has {found[name]} in its cluster, and a shorter time loses more",
                hint="leave it out, or give a longer time",
            )
        found[name] = number
    fields: dict[str, Any] = {_NAMES[name]: number for name, number in found.items()}
    return CleanSettings(**fields, is_stated=POLICY in stated)


def _check_compacted(what: str, policy: str) -> None:
    if "compact" not in [word.strip() for word in policy.split(",")]:
        raise RefusedError(f"{what}: only topics with compact in it are cleaned")


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
