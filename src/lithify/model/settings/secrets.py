"""Which settings are secrets, and how they are removed from a text.

A secret comes from a file or the environment, never from the command line, which all users of the machine
can read; and it is in no error, report or log. The names are those of Kafka's clients, Java's and librdkafka's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

SECRET_NAMES = (
    "(?i)secret|passw(or)?d|passphrase|token$|jaas|oauthbearer[.]config$|keystore[.]key$|(private|ssl)[.]key([.]pem)?$"
)
"""A regular expression for Python and for Java; a setting whose name has a match is a secret."""
HIDDEN = "***"

_SECRET = re.compile(SECRET_NAMES)
_LOGIN_OPTION = re.compile(r"""([\w.]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]+))""")


def is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None


def hidden(text: str, settings: Mapping[str, Any]) -> str:
    """`text` without the secrets among `settings`."""
    for secret in sorted(set(_secrets(settings)), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _secrets(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, str) and value and is_secret(name):
            yield value
            yield " ".join(value.split())  # as in a `LithifyError`, on one line
            for option, *quoted in _LOGIN_OPTION.findall(value):  # of `sasl.jaas.config`
                if is_secret(option):
                    yield from filter(None, quoted)
