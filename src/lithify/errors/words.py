"""In whose words an error says what to do next: the command line's, in which the code has them, or the Python API's.

    `lithify truncate orders --partition 0 --to 2`  ─►  `lake.topic('orders').truncate(partition=0, to=2)`
    --accept-loss, --into, --config NAME=VALUE      ─►  accepts_loss=True, into=..., config={NAME: VALUE}

A program speaks Python unless it is the command line. What neither table has remains as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

CALLS = {
    "cleaner run": "lake.cleaner(",
    "compact": "{topic}.compact(",
    "consume": "{topic}.reader(",
    "group delete": "{group}.delete(",
    "group reset": "{group}.reset(",
    "history": "{topic}.history(",
    "kafka ingest": "lake.ingest(conf",
    "kafka promote": "lithify.kafka.promote({topic}",
    "pulsar compact": "{live}.compact(",
    "pulsar ingest": "lake.ingest_pulsar(config, [{name}]",
    "pulsar uncompact": "{live}.uncompact(",
    "quarantine list": "lake.quarantine(",
    "repair": "lake.repair({name}",
    "replica add": "lake.replicas().add(",
    "replica edit": "lake.replicas().edit({name}",
    "replica promote": "lake.replicas().promote({name}",
    "replica remove": "lake.replicas().remove({name}",
    "replica run": "lake.replicas().daemon(",
    "replica verify": "lake.replicas().verify({name}",
    "retain": "{topic}.retain(",
    "status": "{topic}.status(",
    "stream edit": "{stream}.edit(",
    "stream info": "{stream}.info(",
    "stream list": "lake.streams(",
    "sweep": "{topic}.sweep(",
    "throttle": "{topic}.throttle(",
    "token list": "lake.tokens().infos(",
    "token revoke": "lake.tokens().revoke({name}",
    "topic alter": "{topic}.alter(",
    "topic create": "lake.create_topic({name}",
    "topic delete": "lake.delete_topic({name}",
    "topic list": "lake.topics(",
    "topic uncompact": "{topic}.uncompact(",
    "truncate": "{topic}.truncate(",
    "verify": "{topic}.verify(",
    "versions": "{topic}.versions(",
    "warehouse upgrade": "lake.upgrade(",
}
"""The beginning of the call for each verb. The first argument of the verb names what is in braces."""

_OBJECTS = {
    "topic": "lake.topic({})",
    "group": "lake.group({})",
    "stream": "lake.stream({})",
    "live": "LiveTopic({}, config)",
    "name": "{}",
}
_UNNAMED = {"live": "live_topic", "name": "..."}
"""What stands for an object that a hint does not name, where that is not its kind."""

KEYWORDS = {
    "--accept-loss": "accepts_loss=True",
    "--admin-url": "admin_url={}",
    "--after-crash": "after_crash=True",
    "--allow-clock-jump": "allow_clock_jump=True",
    "--allow-unusual": "allow_unusual=True",
    "--below-compacted": "below_compacted=True",
    "--catalog": "catalog={}",
    "--config": "config={{{}}}",
    "--continuous": "continuous=True",
    "--coordination-url": "coordination_url={}",
    "--drop-null-key": "retain_null_key=False",
    "--every": "every_ms={}",
    "--folder": "folder={}",
    "--grant": "grants=[{}]",
    "--id": "cleaner_id={}",
    "--interval": "interval_ms={}",
    "--into": "into={}",
    "--jars": "jars={}",
    "--lose-trimmed": "lose_trimmed=True",
    "--max-records-per-trigger": "max_records={}",
    "--metadata": "metadata={}",
    "--metadata-url": "metadata_url={}",
    "--name": "name={}",
    "--no-compact": "compact=False",
    "--order": "order={}",
    "--partial-progress": "partial_progress={}",
    "--partition": "partitions=[{}]",
    "--partitions": "partitions={}",
    "--read-rate": "read_rate={}",
    "--replication-factor": "replication_factor={}",
    "--resync": "resyncs=True",
    "--retain-null-key": "retain_null_key=True",
    "--service-url": "service_url={}",
    "--skip-damaged": "skip_damaged=True",
    "--spark-conf": "spark_conf={{{}}}",
    "--sync-groups": "sync_groups=True",
    "--task-memory": "task_memory={}",
    "--threads": "threads={}",
    "--to": "to={}",
    "--topics": "topics=True",
    "--unset": "unset=[{}]",
    "--version": "version={}",
    "--warehouse": "warehouse={}",
    "--write-rate": "write_rate={}",
}
"""The argument for each flag."""

_OF_VERBS = {
    ("repair", "--yes"): "repair=True",
    ("sweep", "--yes"): "delete=True",
    ("truncate", "--partition"): "partition={}",
}
"""Arguments whose names differ from verb to verb. Where no other is named for `--yes`, a call does not ask."""

_COMMAND = re.compile(r"`lithify ([^`]+)`")
_FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]*[a-z])(?: ([\w.]+=\w+|[A-Z]{2,}\b))?")
"""With a value that follows it, if that is a placeholder or a setting: any other word may belong to the sentence."""


class _Program:
    is_the_command_line = False


@contextmanager
def of_the_command_line() -> Iterator[None]:
    """Meanwhile errors of this process have the command line's words."""
    before, _Program.is_the_command_line = _Program.is_the_command_line, True
    try:
        yield
    finally:
        _Program.is_the_command_line = before


def in_program_words(text: str, *, flags: bool = True) -> str:
    """`text`, which has the command line's words, in this program's words; `flags`: with flags outside of commands."""
    return text if _Program.is_the_command_line else in_python(text, flags=flags)


class Worded:
    """An attribute of an error: written with the command line's words, read with the program's."""

    def __init__(self, *, flags: bool = True) -> None:
        self._flags = flags

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, error: object, _owner: type | None = None) -> str:
        return in_program_words(vars(error)[self._name], flags=self._flags)

    def __set__(self, error: object, text: str) -> None:
        vars(error)[self._name] = text


def in_python(text: str, *, flags: bool = True) -> str:
    """The same with the calls and arguments of the Python API."""
    text = _COMMAND.sub(lambda match: f"`{_call(match[1]) or match[0][1:-1]}`", text)
    return _FLAG.sub(lambda match: _bare(match[0], match[1], match[2]), text) if flags else text


def _call(command: str) -> str | None:
    words = command.split()
    verb = next((verb for count in (3, 2, 1) if (verb := " ".join(words[:count])) in CALLS), None)
    if verb is None:
        return None
    names, arguments = _arguments(verb, words[len(verb.split()) :])
    beginning = CALLS[verb]
    for kind, with_name in _OBJECTS.items():
        if f"{{{kind}}}" in beginning:
            named = with_name.format(names.pop(0)) if names else _UNNAMED.get(kind, kind)
            beginning = beginning.format(**{kind: named})
    inside = ", ".join([*names, *arguments])
    return f"{beginning}{', ' if inside and not beginning.endswith('(') else ''}{inside})"


def _arguments(verb: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names and arguments as Python has them."""
    names: list[str] = []
    arguments: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        template = _OF_VERBS.get((verb, word), KEYWORDS.get(word))
        if template is None and word != "--yes":
            names.append(_value(word))
        elif template is not None:
            takes = "{}" in template
            arguments.append(template.format(_value(left.pop(0)) if takes and left else "..."))
    return names, arguments


def _bare(text: str, flag: str, value: str | None) -> str:
    if (template := KEYWORDS.get(flag)) is None:
        return text
    if "{}" in template:
        return template.format("..." if value is None else _value(value))
    return text.replace(flag, template)  # what follows a flag without a value is the sentence's


def _value(word: str) -> str:
    """A placeholder or a number as it is, a setting as an item of a dictionary, all else as a string."""
    name, equals, value = word.partition("=")
    if equals:
        return f"{_value(name)}: {_value(value)}"
    return word if word.isdecimal() or re.fullmatch(r"[A-Z]{2,}", word) else repr(word)
