"""What is said of options of Kafka's tools that no verb here has."""

from __future__ import annotations

from collections.abc import Mapping

_OPTIONS: Mapping[str, str] = {
    "--from-beginning": "Kafka's --from-beginning is --from earliest",
    "--offset": "Kafka's --offset is --from",
    "--max-messages": "Kafka's --max-messages is --max",
    "--replication-factor": "a topic has no replicas of its own: the store replicates the data",
    "--topic": "the topic is an argument: lithify topic info TOPIC",
    "--bootstrap-server": "there is no server: --warehouse DIR or --catalog NAME selects the data",
    "--isolation-level": "readers get only committed records",
    "--all-groups": "`lithify group list` lists all groups, and `lithify group describe GROUP` describes one",
    "--members": "the members of a group are not listed: `lithify group describe GROUP` shows its committed positions",
    "--to-earliest": "Kafka's --to-earliest is --to earliest",
    "--to-latest": "Kafka's --to-latest is --to latest",
    "--to-offset": "Kafka's --to-offset is --to OFFSET",
    "--to-datetime": "Kafka's --to-datetime is --to TIME",
    "--execute": "Kafka's --execute is --yes",
    "--dry-run": "`lithify compact --plan`, and verbs that need --yes, without it, print what they would do",
    **dict.fromkeys(
        ("--command-config", "--consumer.config", "--producer.config"),
        "the settings of a client are in the file of --kafka-conf-file, for the verbs of `lithify kafka`",
    ),
}


def option_counterpart(name: str) -> str | None:
    """What is said of an option of Kafka's tools that no verb here has, None for any other."""
    return _OPTIONS.get(name)
