"""Settings of a Kafka client, by Java's names, as each of the two clients takes them.

settings of a file, of flags or of a caller ─┬─► for_java         Spark's source and its AdminClient
                                             └─► for_librdkafka   confluent-kafka: publish, consumers, the first look
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lithify.errors import InvalidSettingError
from lithify.kafka_client.logins import JAAS, LOGIN_FORM, PASSWORD, USER, login_of_java, login_of_librdkafka
from lithify.kafka_client.names import ALIASES, JAVA, JAVAS_INSTEAD, LIBRDKAFKA, RENAMED, check_names
from lithify.kafka_client.stores import KEYS, TRUST, check_stores, pem_in_lines, stores_of_librdkafka
from lithify.kafka_client.stores import NAMES as STORES
from lithify.model.names import nearest
from lithify.model.settings.secrets import hidden

SERVERS = "bootstrap.servers"
PROTOCOL = "security.protocol"
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
ENDPOINT = "ssl.endpoint.identification.algorithm"
_AS_THEY_ARE = "keys and values are used unchanged"
_SET_BY_US = {
    "auto.offset.reset": (
        "none",
        "a copy continues at its end and a consumer at its position; missing records are an error",
    ),
    "enable.auto.commit": ("false", "positions are stored together with the results"),
    "interceptor.classes": ("", _AS_THEY_ARE),
    "isolation.level": ("read_committed", "only committed records are read"),
    "key.deserializer": ("", _AS_THEY_ARE),
    "key.serializer": ("", _AS_THEY_ARE),
    "value.deserializer": ("", _AS_THEY_ARE),
    "value.serializer": ("", _AS_THEY_ARE),
}
"""What Lithify sets: the value, and why it can be no other."""
_PEM_OF = {"ssl.ca.pem": TRUST, "ssl.certificate.pem": KEYS}
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_JAVA_CLASSES = frozenset(("partitioner.class", "partition.assignment.strategy"))


def refused_settings(conf: Mapping[str, Any]) -> Mapping[str, str]:
    """Settings in `conf` whose value can only be Lithify's own, with the reason."""
    own = {name: _SET_BY_US[name] for name in conf if name in _SET_BY_US}
    return {name: why for name, (value, why) in own.items() if str(conf[name]).lower() != value}


def check_settings(conf: Mapping[str, Any]) -> None:
    """Raises `InvalidSettingError` for the first of the `refused_settings`."""
    for name, why in refused_settings(conf).items():
        raise InvalidSettingError(f"{name}={conf[name]} cannot be set here: {why}", hint="remove it")


def for_java(conf: Mapping[str, Any]) -> dict[str, str]:
    """For Java's client. Raises `InvalidSettingError` for a setting that is mistyped, or librdkafka's alone."""
    check_names(conf)
    _check_values(conf)
    settings: dict[str, str] = {}
    for name, value in conf.items():
        java = ALIASES.get(name, name)
        if name in (USER, PASSWORD) or java in _SET_BY_US:
            continue
        if name == "ssl.ca.location":
            settings |= {f"{TRUST}.type": "PEM", f"{TRUST}.location": str(value)}
        elif java not in JAVA and (name in LIBRDKAFKA or "_" in name):
            instead = JAVAS_INSTEAD.get(name)
            hint = "remove it" if instead is None else f"in Java's names, use {instead}"
            raise InvalidSettingError(
                f"{name} is a setting of librdkafka, but Spark's Kafka client is Java's", hint=hint
            )
        else:
            settings[java] = str(value)
            if name in _PEM_OF:
                settings[f"{_PEM_OF[name]}.type"] = "PEM"
    if (USER in conf or PASSWORD in conf) and JAAS not in settings:
        settings |= login_of_java({**settings, **{name: str(conf[name]) for name in (USER, PASSWORD) if name in conf}})
    check_stores(settings)
    return settings


def for_librdkafka(conf: Mapping[str, Any]) -> dict[str, Any]:
    """For confluent-kafka. Raises `InvalidSettingError`, even if only librdkafka cannot do what Java's client can."""
    check_names(conf)
    _check_values(conf)
    texts = {name: str(value) for name, value in conf.items()}
    check_stores(texts)
    settings: dict[str, Any] = {}
    for name, value in conf.items():
        if name == JAAS or name in STORES or name in _JAVA_CLASSES or name in _SET_BY_US:
            continue
        if name in RENAMED:
            settings[RENAMED[name]] = pem_in_lines(value) if isinstance(value, str) else value
        elif name in LIBRDKAFKA or name not in JAVA:  # one that neither knows is refused by the client itself
            settings.setdefault(name, value)
    if texts.get(ENDPOINT) == "":  # so Java's clients are told not to compare the host's name
        settings[ENDPOINT] = "none"
    return {**login_of_librdkafka(texts), **stores_of_librdkafka(texts), **settings}


def _check_values(conf: Mapping[str, Any]) -> None:
    """Raises `InvalidSettingError` for a value that neither client takes: Java's would say so once Spark runs.

    An address with a login is one as well, which messages of both clients would show.
    """
    check_settings(conf)
    for name, value in conf.items():
        if _NO_TEXT.search(f"{name}{value}"):
            raise InvalidSettingError(
                f"{name!a} has a NUL or half a character, which settings of Kafka's clients cannot have",
                hint="write it as UTF-8",
            )
    protocol = str(conf.get(PROTOCOL, _PROTOCOLS[0]))
    if protocol.upper() not in _PROTOCOLS:
        hint = nearest(protocol.upper(), _PROTOCOLS, f"use one of {', '.join(_PROTOCOLS)}")
        raise InvalidSettingError(
            hidden(f"{PROTOCOL}={protocol} is not a protocol of Kafka's clients", conf), hint=hint
        )
    if conf.get(JAAS) and not str(conf[JAAS]).rstrip().endswith(";"):
        raise InvalidSettingError(f"{JAAS} is not a login: it does not end in a semicolon", hint=LOGIN_FORM)
    if any("@" in str(conf.get(name, "")) for name in (SERVERS, "metadata.broker.list")):
        raise InvalidSettingError(
            f"{SERVERS} has an '@', which the address of a broker cannot have",
            hint=f"write {SERVERS}=HOST:PORT,…, and the login as {USER} and {PASSWORD}, or {JAAS}, in a file",
        )
