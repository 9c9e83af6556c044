"""What is said of options of Kafka's tools that no verb here has."""

from __future__ import annotations

from collections.abc import Mapping

_OPTIONS: Mapping[str, str] = {
    "--from-beginning": "Kafka's --from-beginning is --from earliest",
    "--offset": "Kafka's --offset is --from",
    "--max-messages": "Kafka's --max-messages is --max",
    "--replication-factor": "a topic has no replicas of its own: the store keeps the copies",
    "--topic": "the topic is an argument: lithify topic info TOPIC",
    "--bootstrap-server": "there is no server: --warehouse DIR or --catalog NAME says where the data is",
}


def option_counterpart(name: str) -> str | None:
    """What is said of an option of Kafka's tools that no verb here has, None for any other."""
    return _OPTIONS.get(name)
