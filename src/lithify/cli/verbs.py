"""Every verb of the program, by noun and by subject, and where each is: the one that runs is imported, no other."""

from __future__ import annotations

from collections.abc import Mapping

import click

import lithify
from lithify.cli.nouns import Nouns, Subjects


@click.group(
    "topic",
    cls=Nouns,
    verbs={
        "create": "topics.create:create",
        "list": "topics.list:list_topics",
        "info": "topics.info:info",
        "alter": "topics.alter:alter",
        "uncompact": "topics.uncompact:uncompact",
        "delete": "topics.delete:delete",
    },
)
def topic_group() -> None:
    """Create, list, show, change and delete topics.

    A topic is STREAM/TOPIC, or TOPIC alone in the stream "default". Names of Pulsar
    (persistent://tenant/namespace/topic) and of MapR (/path/stream:topic) are accepted as well.
    """


@click.group(
    "stream",
    cls=Nouns,
    verbs={
        "create": "streams.create:create",
        "edit": "streams.edit:edit",
        "info": "streams.info:info",
        "list": "streams.list:list_streams",
        "delete": "streams.delete:delete",
    },
)
def stream_group() -> None:
    """Create, list, show, change and delete streams.

    A stream is a namespace of topics, STREAM/TOPIC. It has attributes that they inherit: whether they are
    compacted, how long they keep records, how many partitions they get. MapR's streams are written /path/stream.
    """


@click.group(
    "warehouse",
    cls=Nouns,
    verbs={
        "info": "warehouse.info:info",
        "upgrade": "warehouse.upgrade:upgrade",
    },
)
def warehouse_group() -> None:
    """Show and upgrade what a warehouse can hold.

    A warehouse has a format. A warehouse that an earlier Lithify created keeps its format until it is upgraded.
    """


@click.group(
    "cleaner",
    cls=Nouns,
    verbs={
        "run": "cleaner.run:run",
    },
)
def cleaner_group() -> None:
    """Compact all topics continuously.

    A cleaner checks every topic of a catalog and runs the rounds, retention and sweeps that are due.
    """


@click.group(
    "job",
    cls=Nouns,
    verbs={
        "add": "gateway.jobs:add",
        "list": "gateway.jobs:list_jobs",
        "pause": "gateway.jobs:pause",
        "resume": "gateway.jobs:resume",
        "remove": "gateway.jobs:remove",
    },
)
def job_group() -> None:
    """Add, list, pause and remove standing jobs.

    A standing job is a command line, such as a continuous ingest, that one of the gateways of a warehouse runs. If
    this gateway fails, another one takes it over.
    """


@click.group(
    "gateway",
    cls=Nouns,
    verbs={
        "run": "gateway.run:run",
        "job": job_group,
    },
)
def gateway_group() -> None:
    """Run a gateway, and define its standing jobs.

    A gateway is a cleaner with a page and an HTTP API. It also runs standing jobs.
    """


@click.group(
    "quarantine",
    cls=Nouns,
    verbs={
        "list": "cleaner.quarantine:list_quarantine",
        "release": "cleaner.quarantine:release",
    },
)
def quarantine_group() -> None:
    """List and release logs whose rounds fail.

    A log that failed 8 times in a row is quarantined: cleaners skip it until it is released.
    """


@click.group(
    "group",
    cls=Nouns,
    verbs={
        "list": "groups.list:list_groups",
        "describe": "groups.describe:describe",
        "reset": "groups.reset:reset",
        "delete": "groups.delete:delete",
    },
)
def group_group() -> None:
    """List, show, move and delete the committed positions of consumer groups.

    A group continues at its committed position. Its members share the partitions of a topic:
    `lithify consume TOPIC --group GROUP`.
    """


@click.group(
    "kafka",
    cls=Nouns,
    verbs={
        "ingest": "kafka.ingest:ingest",
        "import": "kafka.importing:import_",
        "clean": "kafka.clean:clean",
        "publish": "kafka.publish:publish",
        "hydrate": "kafka.hydrate:hydrate",
        "promote": "kafka.promote:promote",
    },
)
def kafka_group() -> None:
    """Copy topics from a Kafka cluster, and back, and fill tables from both.

    A copy has the same partitions and offsets as the Kafka topic.
    """


@click.group(
    "pulsar",
    cls=Nouns,
    verbs={
        "ingest": "pulsar.ingest:ingest",
        "compact": "pulsar.compact:compact",
        "uncompact": "pulsar.uncompact:uncompact",
        "leftovers": "pulsar.leftovers:leftovers",
    },
)
def pulsar_group() -> None:
    """Work on topics of a live Pulsar cluster: copy them into the lake, compact them there.

    A round of compact on Spark replaces Pulsar's own compaction, which runs in a broker with all keys in its memory.
    """


@click.group(
    "replica",
    cls=Nouns,
    verbs={
        "add": "replicas.add:add",
        "edit": "replicas.edit:edit",
        "pause": "replicas.edit:pause",
        "resume": "replicas.edit:resume",
        "remove": "replicas.edit:remove",
        "status": "replicas.status:status",
        "run": "replicas.run:run",
        "verify": "replicas.verify:verify",
        "promote": "replicas.promote:promote",
    },
)
def replica_group() -> None:
    """Replicate topics to another warehouse and keep the replicas up to date.

    A replica is at every moment exactly what its source was at some version. In a plain folder or bucket it is
    a backup; on another site it takes over: `lithify replica promote`.
    """


@click.group(
    "token",
    cls=Nouns,
    verbs={
        "create": "tokens.create:create",
        "list": "tokens.list:list_tokens",
        "revoke": "tokens.revoke:revoke",
    },
)
def token_group() -> None:
    """Create, list and revoke the tokens with which a gateway is asked.

    A token has roles, each for one stream or for all. Who has the token may do what its roles include.
    """


SUBJECTS: Mapping[str, Mapping[str, str | click.Command]] = {
    "First steps": {
        "demo": "rounds.demo:demo",
        "doctor": "doctor.doctor:doctor",
        "completion": "completion:completion",
    },
    "Topics and their places": {
        "topic": topic_group,
        "stream": stream_group,
        "warehouse": warehouse_group,
    },
    "Records": {
        "produce": "records.produce:produce",
        "consume": "records.consume:consume",
        "table": "records.consume:table",
        "hydrate": "records.hydrate:hydrate",
        "group": group_group,
    },
    "Compaction": {
        "compact": "rounds.compact:compact",
        "status": "cleaner.status:status",
        "history": "rounds.history:history",
        "verify": "rounds.verify:verify",
        "cleaner": cleaner_group,
        "throttle": "cleaner.throttle:throttle",
        "quarantine": quarantine_group,
    },
    "Deletes and versions": {
        "retain": "cuts.retain:retain",
        "delete-records": "cuts.delete_records:delete_records",
        "truncate": "cuts.truncate:truncate",
        "versions": "rounds.versions:versions",
        "undo": "rounds.undo:undo",
        "sweep": "cuts.sweep:sweep",
        "repair": "cuts.repair:repair",
    },
    "Other systems and places": {
        "kafka": kafka_group,
        "pulsar": pulsar_group,
        "replica": replica_group,
    },
    "Gateways": {
        "gateway": gateway_group,
        "token": token_group,
    },
}
"""Every verb, as the help of the program lists them."""


@click.group("lithify", cls=Subjects, subjects=SUBJECTS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(lithify.__version__, message="%(prog)s %(version)s")
def lithify_group() -> None:
    """Log compaction for keyed topics in a data lake, on Spark.

    A topic keeps records with keys; compaction keeps the latest of every key, and offsets do not change.

    \b
    See it work:      lithify demo
    Start a topic:    lithify topic create orders --partitions 4
    Put records in:   lithify produce orders orders.jsonl
    Compact it:       lithify compact orders
    Read it back:     lithify consume orders
    """
