"""Failures of Kafka's client as errors of Lithify: each says what is wrong, and which setting to check."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lithify.errors import BrokerError, LithifyError, UnknownSourceError
from lithify.model.settings.secrets import hidden

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

PROBE_S = 2.0
"""The wait for one server that is asked whether it speaks TLS."""


def error_of(failure: KafkaError, conf: Mapping[str, Any], servers: str, topic: str = "") -> LithifyError:
    """The error for a failure of a client with the settings `conf`, librdkafka's."""
    k: Any = type(failure)
    where, code = f"Kafka at {servers}", failure.code()
    if code in (k.UNKNOWN_TOPIC_OR_PART, k._UNKNOWN_TOPIC, k._UNKNOWN_PARTITION):
        return UnknownSourceError(f"{where} has no topic {topic}".rstrip(), hint="check the name and the cluster")
    if code == k.TOPIC_EXCEPTION:
        return UnknownSourceError(f"{topic!r} is not a valid name of a Kafka topic", hint="check the name")
    what, hint = _refused(failure, conf, topic) if code in refusals(k) else _failed(failure, conf, servers)
    return BrokerError(f"{where} {what}", hint=hint)


def silence(k: Any) -> tuple[int, ...]:
    """Codes of the class `KafkaError` that mean that no broker answered."""
    return (k._TRANSPORT, k._TIMED_OUT, k._ALL_BROKERS_DOWN, k._RESOLVE, k._TIMED_OUT_QUEUE)


def refusals(k: Any) -> tuple[int, ...]:
    """Codes that mean that a retry is useless."""
    return (
        k._AUTHENTICATION,
        k._SSL,
        k.SASL_AUTHENTICATION_FAILED,
        k.TOPIC_AUTHORIZATION_FAILED,
        k.GROUP_AUTHORIZATION_FAILED,
        k.CLUSTER_AUTHORIZATION_FAILED,
        k.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    )


def speaks_tls(servers: str) -> bool:
    """Whether one of the servers, HOST:PORT with commas, takes a TLS handshake, with whatever certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    for server in servers.split(","):
        host, _, port = server.rpartition("://")[2].strip().rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), PROBE_S) as connection:
                connection.settimeout(PROBE_S)
                with context.wrap_socket(connection, server_hostname=host):
                    return True
        except ssl.SSLError as error:
            if "ALERT" in (error.reason or ""):  # it refuses the handshake, in words of TLS
                return True
        except (OSError, ValueError):
            continue
    return False


def _protocol(conf: Mapping[str, Any]) -> str:
    return str(conf.get("security.protocol", "PLAINTEXT")).upper()


def _refused(failure: KafkaError, conf: Mapping[str, Any], topic: str) -> tuple[str, str]:
    """What is said of the cluster, and the hint."""
    k: Any = type(failure)
    why, refuses = hidden(failure.str(), conf), "refuses this client"
    match failure.code():
        case k.TOPIC_AUTHORIZATION_FAILED:
            user = conf.get("sasl.username", "this user")
            hint = f"give {user} the right to Describe it, and to Read it (for an ingest) or Write it (to publish)"
            return f"{refuses} access to topic {topic}".rstrip() + f": {why}", hint
        case k._AUTHENTICATION | k.SASL_AUTHENTICATION_FAILED if "mechanism handshake failed" in why:
            mechanism = conf.get("sasl.mechanism", conf.get("sasl.mechanisms", "GSSAPI"))
            hint = "check sasl.mechanism, security.protocol and the port in bootstrap.servers"
            return f"{refuses}: it does not support login by {mechanism} at this port: {why}", hint
        case k._AUTHENTICATION | k.SASL_AUTHENTICATION_FAILED:
            return f"{refuses} its login: {why}", "check user and password in sasl.jaas.config, and sasl.mechanism"
        case k._SSL if "certificate verify failed" in why:
            hint = "give the certificate of its authority: ssl.truststore.type=PEM and ssl.truststore.location=FILE"
            return f"{refuses} TLS: its certificate is not trusted: {why}", hint
        case k._SSL:
            return f"{refuses} TLS: {why}", "check ssl.truststore.*, ssl.keystore.* and ssl.key.password"
        case _:
            return f"{refuses}: {why}", "check user, password and rights"


def _failed(failure: KafkaError, conf: Mapping[str, Any], servers: str) -> tuple[str, str]:
    """What is said of the cluster, and the hint."""
    k: Any = type(failure)
    why = hidden(failure.str(), conf)
    match failure.code():
        case k._RESOLVE:
            return f"fails: no such host: {why}", "check the host in bootstrap.servers"
        case k._ALL_BROKERS_DOWN | k._TRANSPORT:
            return _not_connected(why, conf, servers, closed=failure.code() == k._ALL_BROKERS_DOWN)
        case k._BAD_MSG:
            hint = "check host and port in bootstrap.servers, and security.protocol"
            return f"fails: the server at this address is not a Kafka broker: {why}", hint
        case _:
            return f"fails: {why}", "check that it runs and can be reached from here, then try again"


def _not_connected(why: str, conf: Mapping[str, Any], servers: str, *, closed: bool) -> tuple[str, str]:
    protocol = str(conf.get("security.protocol", "PLAINTEXT")).upper()
    # Of a handshake that was cut off the client only sometimes says that the other side may have no TLS.
    if "connecting to a PLAINTEXT" in why or ("SSL_HANDSHAKE" in why and not speaks_tls(servers)):
        hint = f"set security.protocol to {_without_tls(protocol)}, or use its port for TLS"
        return f"fails: it uses plain text, but security.protocol is {protocol}", hint
    if closed and "SSL" not in protocol and speaks_tls(servers):
        hint = f"set security.protocol to {_with_tls(protocol)}, or use its port for plain text"
        return f"fails: it uses TLS, but security.protocol is {protocol}", hint
    # Closed before the client could send its first request, or while it did.
    if protocol == "PLAINTEXT" and (closed or "Send failed: Broken pipe" in why):
        hint = "if this port requires a login, set security.protocol to SASL_PLAINTEXT or SASL_SSL"
        return f"fails: it closes connections without a login: {why}", hint
    return (
        f"fails: {why}",
        "check host and port in bootstrap.servers, and that the broker runs and can be reached; then try again",
    )


def _with_tls(protocol: str) -> str:
    return "SASL_SSL" if protocol.startswith("SASL") else "SSL"


def _without_tls(protocol: str) -> str:
    return "SASL_PLAINTEXT" if protocol.startswith("SASL") else "PLAINTEXT"
