"""Key and trust stores of Kafka's clients: Java's settings, and what librdkafka has for them.

Java's clients read JKS, PKCS#12 and PEM. librdkafka reads PEM, and keys from PKCS#12 too; of what it cannot read
the error has the command that converts it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from lithify.errors import InvalidSettingError
from lithify.errors.given_files import head_of_given

TRUST, KEYS = "ssl.truststore", "ssl.keystore"
NAMES = frozenset(f"{store}.{what}" for store in (TRUST, KEYS) for what in ("type", "location", "password"))
_JKS = bytes.fromhex("feedfeed")
_PEM = re.compile(r"-----BEGIN ([^-]++)-----([A-Za-z0-9+/=\s]++)-----END \1-----")  # of a megabyte within a second


def check_stores(conf: Mapping[str, str]) -> None:
    """Raises `InvalidSettingError` for a store that is not there, or is PEM where the settings do not say so."""
    for store in (TRUST, KEYS):
        path, kind = conf.get(f"{store}.location"), _kind(conf, store)
        if path and _head(path, store).lstrip().startswith((b"-----BEGIN", b"Bag Attributes")) and kind != "PEM":
            raise InvalidSettingError(f"{store}.location: {path} is a PEM file", hint=f"add {store}.type=PEM")


def stores_of_librdkafka(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings of librdkafka for the stores in files. Raises `InvalidSettingError`."""
    trust, keys = conf.get(f"{TRUST}.location"), conf.get(f"{KEYS}.location")
    settings: dict[str, str] = {}
    if trust:
        if _kind(conf, TRUST) != "PEM":
            raise _not_readable(TRUST, trust, f"keytool -list -rfc -keystore {trust} > ca.pem", "PEM", "ca.pem")
        settings["ssl.ca.location"] = trust
    if keys and _kind(conf, KEYS) == "PEM":
        settings |= {"ssl.certificate.location": keys, "ssl.key.location": keys}
    elif keys:
        if _head(keys, KEYS).startswith(_JKS):
            command = f"keytool -importkeystore -srckeystore {keys} -destkeystore client.p12 -deststoretype PKCS12"
            raise _not_readable(KEYS, keys, command, "PKCS12", "client.p12")
        settings[f"{KEYS}.location"] = keys
        if password := conf.get(f"{KEYS}.password"):
            settings[f"{KEYS}.password"] = password
    return settings


def pem_in_lines(text: str) -> str:
    """PEM as OpenSSL reads it: Java's clients take it in one line too, as continued lines of a file have it."""

    def lines(match: re.Match[str]) -> str:
        body = "\n".join(textwrap.wrap("".join(match[2].split()), 64))
        return f"-----BEGIN {match[1]}-----\n{body}\n-----END {match[1]}-----\n"

    return _PEM.sub(lines, text)


def _kind(conf: Mapping[str, str], store: str) -> str:
    return conf.get(f"{store}.type", "").upper()


def _head(path: str, store: str) -> bytes:
    try:
        return head_of_given(path, 64)
    except OSError as error:
        why = f"{store}.location: {path} cannot be read: {error.strerror}"
        raise InvalidSettingError(why, hint="check the path") from error


def _not_readable(store: str, path: str, command: str, kind: str, file: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"{store}.location: Kafka's client for Python cannot read {path}, which is not {kind}",
        hint=f"run {command}, and set {store}.type={kind} and {store}.location={file}",
    )
