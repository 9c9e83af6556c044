"""The names of the settings of Kafka's clients: Java's, which users give, and librdkafka's, which are accepted too.

    Java's name ──────────────► Java's client, in Spark
          └─ RENAMED ─────────► librdkafka, in confluent-kafka
    librdkafka's own name ────► librdkafka; Java's client takes it if it has the same under another name

A name that neither has is refused where it looks like one that is mistyped. Others are left to what they are for:
files of settings are shared with clients of schema registries and with plug-ins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from lithify.errors import InvalidSettingError
from lithify.model.names import nearest

T = TypeVar("T")


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


BOTH = _names(
    """
    acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.servers
    check.crcs client.dns.lookup client.id client.rack compression.type connections.max.idle.ms
    delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push fetch.max.bytes
    fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    isolation.level linger.ms max.in.flight.requests.per.connection max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy partition.assignment.strategy reconnect.backoff.max.ms reconnect.backoff.ms
    request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.kerberos.kinit.cmd
    sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.mechanism
    sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url security.protocol
    session.timeout.ms share.acknowledgement.mode socket.connection.setup.timeout.ms ssl.cipher.suites
    ssl.endpoint.identification.algorithm ssl.key.password ssl.keystore.location ssl.keystore.password
    transaction.timeout.ms transactional.id
    """
)
"""Names that both have; of some the meaning differs (`RENAMED`)."""
JAVA = BOTH | _names(
    """
    bootstrap.controllers buffer.memory compression.gzip.level compression.lz4.level compression.zstd.level
    config.providers default.api.timeout.ms exclude.internal.topics fetch.max.wait.ms interceptor.classes
    key.deserializer key.serializer max.block.ms max.request.size metadata.max.idle.ms metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys receive.buffer.bytes sasl.client.callback.handler.class sasl.jaas.config
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
    sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope.claim.name security.providers send.buffer.bytes share.acquire.mode
    socket.connection.setup.timeout.max.ms ssl.enabled.protocols ssl.engine.factory.class
    ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.type ssl.protocol
    ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates
    ssl.truststore.location ssl.truststore.password ssl.truststore.type transaction.two.phase.commit.enable
    value.deserializer value.serializer
    """
)
"""Of consumers, producers and admin clients of Kafka 4.3."""
LIBRDKAFKA = BOTH | _names(
    """
    api.version.fallback.ms api.version.request api.version.request.timeout.ms auto.commit.enable
    batch.num.messages broker.address.family broker.address.ttl broker.version.fallback builtin.features
    compression.codec compression.level consume.callback.max.messages coordinator.query.interval.ms debug
    delivery.report.only.error enable.auto.offset.store enable.gapless.guarantee enable.partition.eof
    enable.random.seed enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification
    fetch.error.backoff.ms fetch.message.max.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.protocol.type
    https.ca.location https.ca.pem internal.termination.signal log.connection.close log.queue log.thread.name
    max.in.flight message.copy.max.bytes message.max.bytes message.send.max.retries message.timeout.ms
    metadata.broker.list offset.store.method offset.store.path offset.store.sync.interval.ms partitioner
    plugin.library.paths produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages
    queuing.strategy receive.message.max.bytes reconnect.backoff.jitter.ms request.required.acks
    sasl.kerberos.keytab sasl.kerberos.principal sasl.mechanisms sasl.oauthbearer.assertion.jwt.template.file
    sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.client.id sasl.oauthbearer.client.secret
    sasl.oauthbearer.config sasl.oauthbearer.extensions sasl.oauthbearer.grant.type
    sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method sasl.password sasl.username
    socket.blocking.max.ms socket.keepalive.enable socket.max.fails socket.nagle.disable
    socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.certificate.stores
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.crl.location ssl.curves.list
    ssl.engine.id ssl.engine.location ssl.key.location ssl.key.pem ssl.providers ssl.sigalgs.list
    statistics.interval.ms sticky.partitioning.linger.ms topic.blacklist topic.metadata.propagation.max.ms
    topic.metadata.refresh.fast.cnt topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse
    """
)
"""Of librdkafka 2.16."""

RENAMED = {
    "request.timeout.ms": "socket.timeout.ms",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "max.request.size": "message.max.bytes",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
    "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
}
"""Java's name, and librdkafka's for the same. `request.timeout.ms` of librdkafka is about producers only."""
ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.in.flight": "max.in.flight.requests.per.connection",
    **{theirs: java for java, theirs in RENAMED.items()},
}
"""librdkafka's name, and Java's for the same."""
JAVAS_INSTEAD = {
    "ssl.certificate.location": "ssl.keystore.type=PEM and ssl.keystore.location=FILE, with key and certificates",
    "ssl.key.location": "ssl.keystore.type=PEM and ssl.keystore.location=FILE, with key and certificates",
    "sasl.kerberos.keytab": "keyTab in sasl.jaas.config",
    "sasl.kerberos.principal": "principal in sasl.jaas.config",
    "sasl.oauthbearer.extensions": "extension_NAME in sasl.jaas.config",
    "enable.ssl.certificate.verification": "ssl.endpoint.identification.algorithm= and a trust store",
}
"""librdkafka's name, and what stands for it in Java's settings."""
_SURELY_KAFKAS = ("sasl.", "ssl.", "security.")
_MISTYPED = 0.85
"""How close, of 1, a name has to be to a known one to be taken for that, mistyped."""


def check_names(names: Iterable[str], *, strict: bool = False) -> tuple[str, ...]:
    """The names that no client of Kafka has. Raises `InvalidSettingError` for one that is mistyped.

    With `strict` any unknown name is.
    """
    known = {*JAVA, *LIBRDKAFKA}
    unknown = [name for name in names if name not in known and not _is_of_the_binding(name)]
    for name in unknown:
        if strict or name.startswith(_SURELY_KAFKAS) or get_close_matches(name, known, n=1, cutoff=_MISTYPED):
            raise InvalidSettingError(
                f"{name} is not a setting of a Kafka client", hint=nearest(name, sorted(known), "remove it")
            )
    return tuple(unknown)


def without_unknown(conf: Mapping[str, T]) -> dict[str, T]:
    """`conf` of a shared file without the settings of other clients. Raises as `check_names`."""
    unknown = check_names(conf)
    return {name: value for name, value in conf.items() if name not in unknown}


def _is_of_the_binding(name: str) -> bool:
    """Whether it is one of confluent-kafka and librdkafka that is not a text, such as `error_cb`."""
    return "_" in name or name in ("logger", "default.topic.config", "debug")
