"""Names of streams, topics and logs.

A topic is `STREAM/TOPIC`, or `TOPIC` alone in the stream `default`. Names of Pulsar
(`persistent://tenant/namespace/topic`) and of MapR (`/path/stream:topic`) are accepted as well:
their parts, percent-encoded, name a stream under `pulsar.` or `mapr.`, no two of them the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

from lithify.errors import InvalidNameError, RefusedError

DEFAULT_STREAM = "default"
PULSARS = "persistent://"
MAX_NAME_LENGTH = 249  # Kafka's own limit on a topic's name

_NUMBERS = re.compile(r"([0-9]+)")
_NAME = re.compile(r"[A-Za-z0-9._%-]+")
_PULSAR = re.compile(r"persistent://([^/]+)/([^/]+)/(.+)")
_PULSAR_NAMESPACE = re.compile(r"persistent://([^/]+)/([^/]+)")
_MAPR = re.compile(r"(/.+):([^:/]+)")
_PARTITION = re.compile(r"(.+)-partition-(0|[1-9][0-9]{0,8})")  # Pulsar accepts no leading zeros either


@dataclass(frozen=True, slots=True, order=True)
class TopicName:
    """A topic within a stream, in the canonical form under which it is stored. Prints as its own system writes it."""

    stream: str
    topic: str

    def __str__(self) -> str:
        return original_name(self)

    @property
    def stored(self) -> str:
        """`STREAM/TOPIC` as it is stored, which names the topic as well."""
        return self.topic if self.stream == DEFAULT_STREAM else f"{self.stream}/{self.topic}"


def in_order(name: object) -> tuple[tuple[str | int, ...], str]:
    """The key by which people sort names: `t2` before `t10`."""
    text = str(name)
    return tuple(int(part) if n % 2 else part for n, part in enumerate(_NUMBERS.split(text))), text


@dataclass(frozen=True, slots=True, order=True)
class LogId:
    """One log: a partition of a topic. Prints as Kafka prints it, `orders-3`, or Pulsar, `…/orders-partition-3`."""

    topic: TopicName
    partition: int

    def __str__(self) -> str:
        return partition_of(str(self.topic), self.partition)


@dataclass(frozen=True, slots=True)
class TopicReference:
    """A name as a person wrote it: the topic, and the partition if the name had one."""

    name: TopicName
    original: str
    partition: int | None = None

    def whole(self, done: str) -> TopicName:
        """The topic, where something is `done` to a topic alone. Raises `RefusedError` if a partition was named."""
        if self.partition is not None:
            raise RefusedError(
                f"{self.original}-partition-{self.partition} is a partition; only a whole topic can be {done}",
                hint=f"pass the topic {self.original}",
            )
        return self.name


def parse_topic(text: str) -> TopicReference:
    """The topic that `text` names. Raises `InvalidNameError`."""
    if any("\ud800" <= character <= "\udfff" for character in text):  # bytes of a shell that are no text
        raise InvalidNameError(f"{text!r} is not a topic: it is not UTF-8", hint=_ACCEPTED)
    if text.startswith("non-persistent://"):
        raise InvalidNameError(f"{text}: a non-persistent topic stores nothing, so there is nothing to compact")
    if match := _PULSAR.fullmatch(text):
        return _parse_pulsar(text, *match.groups())
    if match := _MAPR.fullmatch(text):
        return TopicReference(_checked(f"mapr.{_encode(match[1])}", _encode(match[2]), text), text)
    if "://" in text or text.startswith("/"):
        raise InvalidNameError(f"{text}: not a topic", hint=_ACCEPTED)
    stream, slash, topic = text.rpartition("/")
    return TopicReference(_checked(stream if slash else DEFAULT_STREAM, topic, text), text)


def parse_stream(text: str) -> str:
    """The stream that `text` names: `STREAM`, or as Pulsar and MapR write it. Raises `InvalidNameError`."""
    if match := _PULSAR_NAMESPACE.fullmatch(text):
        return parse_topic(f"persistent://{match[1]}/{match[2]}/topic").name.stream
    if text.startswith("/"):
        return parse_topic(f"{text}:topic").name.stream
    if "/" in text:
        raise InvalidNameError(f"{text!r} is not a stream", hint=_ACCEPTED_STREAMS)
    try:
        return parse_topic(f"{text}/topic").name.stream
    except InvalidNameError as error:
        raise InvalidNameError(error.message.replace(f"{text}/topic", text), hint=_ACCEPTED_STREAMS) from None


def original_stream(stream: str) -> str:
    """The name as its own system writes it: the inverse of `parse_stream`."""
    whole = original_name(TopicName(stream, "topic"))
    if whole.startswith(PULSARS):
        return whole.removesuffix("/topic")
    return whole.removesuffix(":topic") if whole.startswith("/") else stream


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for an unknown name, of whatever kind: the known one that it may stand for, or `otherwise`.

    The name may be in another case: `ORDERS` for `orders`, and options of Spark, which arrive in lower case. What
    topics are in makes none alike: persistent://shop/eu/orders is not near to persistent://shop/eu/clicks.
    """
    from difflib import get_close_matches

    exact = {one: one for one in known}
    for spelled, given in ((exact, name), ({one.lower(): one for one in exact}, name.lower())):
        close = get_close_matches(given, spelled, n=1)
        if close and get_close_matches(_last_part(given), [_last_part(close[0])]):
            return f"did you mean {spelled[close[0]]}?"
    return otherwise


def _last_part(name: str) -> str:
    return re.split("[/:]", name)[-1]


def check_printable(reference: TopicReference) -> None:
    """For a topic that is created. Raises `InvalidNameError` for a name with unprintable characters.

    Pulsar and MapR accept such characters after the last '/' or ':', so existing topics may have them.
    """
    if not reference.original.isprintable():
        raise InvalidNameError(
            f"{reference.original!a} is not a valid topic name: it has characters that cannot be printed",
            hint="remove line breaks, escapes and marks of direction",
        )


def partition_of(topic: str, partition: int) -> str:
    """How the system prints a partition that has this name of a topic."""
    return f"{topic}-{'partition-' if topic.startswith(PULSARS) else ''}{partition}"


def original_name(name: TopicName) -> str:
    """The name as its own system writes it: the inverse of `parse_topic`."""
    family, *parts = name.stream.split(".")
    match family, [unquote(part) for part in parts]:
        case "pulsar", [tenant, namespace]:
            foreign = f"{PULSARS}{tenant}/{namespace}/{unquote(name.topic)}"
        case "mapr", [path]:
            foreign = f"{path}:{unquote(name.topic)}"
        case _:
            return name.stored
    try:
        return foreign if parse_topic(foreign) == TopicReference(name, foreign) else name.stored
    except InvalidNameError:  # a stream of Lithify's that only begins like one of theirs
        return name.stored


def checked_group(name: str) -> str:
    """`name` if it can be one of a consumer group. Raises `InvalidNameError`."""
    if len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        raise InvalidNameError(
            f"{name!r} is not a group: it must be 1 to {MAX_NAME_LENGTH} letters, digits, '.', '_', '%' or '-'"
        )
    return name


_ACCEPTED_STREAMS = "write STREAM, persistent://TENANT/NAMESPACE or /PATH/STREAM"
_ACCEPTED = "write STREAM/TOPIC, TOPIC, persistent://TENANT/NAMESPACE/TOPIC or /PATH/STREAM:TOPIC"


def _parse_pulsar(text: str, tenant: str, namespace: str, topic: str) -> TopicReference:
    partition = None
    if match := _PARTITION.fullmatch(topic):
        topic, partition = match[1], int(match[2])
    name = _checked(f"pulsar.{_encode(tenant)}.{_encode(namespace)}", _encode(topic), text)
    original = text if partition is None else text.removesuffix(f"-partition-{partition}")
    return TopicReference(name, original, partition)


def _encode(part: str) -> str:
    # '.' separates the parts of a stream's name, so inside a part it has to be encoded as well.
    return quote(part, safe="").replace(".", "%2E").replace("~", "%7E")


def _checked(stream: str, topic: str, text: str) -> TopicName:
    for part in (stream, topic):
        if not part or part in (".", "..") or len(part) > MAX_NAME_LENGTH or not _NAME.fullmatch(part):
            raise InvalidNameError(
                f"{text!r} is not a topic: {part!r} must be 1 to {MAX_NAME_LENGTH} letters, digits, '.', '_' or '-'",
                hint=_ACCEPTED,
            )
    if ".." in stream or stream.startswith(".") or stream.endswith("."):
        raise InvalidNameError(f"{text!r} is not a topic: the stream {stream!r} has an empty part between dots")
    return TopicName(stream, topic)
