"""Which command lines may be standing jobs, by their words alone: the options of a verb are the verb's to check.

    kafka ingest --continuous          never ends: restarted when it does
    pulsar compact                     ends: needs --every
    topic delete, produce, cleaner     not a job: refused

The warehouse and the form of the output are the gateway's. A job is stored where others read it, and `ps` shows it
while it runs, so a secret in it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from lithify.errors import InvalidInputError
from lithify.model.settings.secrets import is_secret, is_secret_of_service

MOST_ARGUMENTS = 200
MOST_CHARACTERS = 16_384
"""Of all arguments together."""
LEAST_EVERY_MS = 1_000
MOST_EVERY_MS = 36_500 * 86_400_000
"""A hundred years: with any number the time of the next run would be none that a database takes."""

_OF_THE_GATEWAY = ("--warehouse", "--catalog", "--json", "--debug", "--gateway")
_PASSWORD = re.compile(r"://[^\s/:@]*:(?!PASSWORD@)[^\s@]+@")
_HELP = ("--help", "-h", "--version")


def _continuous(words: Sequence[str]) -> bool:
    return [word for word in words if word in ("--continuous", "--available-now")][-1:] == ["--continuous"]


def _until_once(words: Sequence[str]) -> bool:
    return "--once" not in words


def _never(_words: Sequence[str]) -> bool:
    return False


VERBS: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "hydrate": _continuous,
    "kafka hydrate": _continuous,
    "kafka ingest": _continuous,
    "kafka publish": _continuous,
    "pulsar compact": _never,
    "pulsar ingest": _continuous,
    "replica run": _until_once,
}
"""The verbs that may be jobs, and whether one with these words runs until it is stopped."""


def verb_of(arguments: Sequence[str]) -> str:
    """The verb of a command line. Raises `InvalidInputError` if it may not be a job."""
    for verb in VERBS:
        if list(arguments[: len(verb.split())]) == verb.split():
            return verb
    given = " ".join(arguments[:2]) or "nothing"
    raise InvalidInputError(
        f"a standing job cannot run `{given}`", hint=f"begin its command line with one of: {', '.join(VERBS)}"
    )


def check_line(arguments: Sequence[str], every_ms: int | None) -> None:
    """Raises `InvalidInputError` for a command line that cannot be a standing job."""
    check_words(arguments)
    _check_end(verb_of(arguments), arguments, every_ms)


def check_words(arguments: Sequence[str]) -> None:
    """Raises `InvalidInputError` for another verb, for words that no job has, and for too many."""
    verb_of(arguments)
    _check_size(arguments)
    for word in arguments:
        option = word.partition("=")[0]
        if option in _OF_THE_GATEWAY:
            raise InvalidInputError(
                f"{option} in the command line of a job: the gateway that runs it passes its own", hint=f"omit {option}"
            )
        if option in _HELP:
            raise InvalidInputError(
                f"{option} in the command line of a job", hint="omit it, and pass it to the verb itself"
            )
        if _has_secret(word):
            raise InvalidInputError(
                "the command line of a job has a secret, and is stored where others read it",
                hint="put it into a file or into the environment of the gateways, such as '${env:NAME}'",
            )


def _check_end(verb: str, arguments: Sequence[str], every_ms: int | None) -> None:
    """A command that ends is to be repeated, and no other one."""
    endless = VERBS[verb](arguments)
    if endless and every_ms is not None:
        raise InvalidInputError(f"`{verb}` runs until it is stopped with these options", hint="omit --every")
    if not endless and every_ms is None:
        how = "" if VERBS[verb] is _never else ", or options with which it runs until it is stopped"
        raise InvalidInputError(f"`{verb}` ends by itself with these options", hint=f"pass --every DURATION{how}")
    if every_ms is not None and not LEAST_EVERY_MS <= every_ms <= MOST_EVERY_MS:
        raise InvalidInputError(f"--every is {every_ms} ms", hint="pass at least 1s, and at most a hundred years")


def _check_size(arguments: Sequence[str]) -> None:
    characters = sum(map(len, arguments))
    if len(arguments) > MOST_ARGUMENTS or characters > MOST_CHARACTERS:
        raise InvalidInputError(
            f"the command line has {len(arguments)} words and {characters} characters",
            hint=f"use at most {MOST_ARGUMENTS} words with {MOST_CHARACTERS} characters together",
        )
    if any("\0" in word for word in arguments):
        raise InvalidInputError("the command line has a NUL character", hint="remove it")


def _has_secret(word: str) -> bool:
    """Whether a word has a URL with a password, or assigns a setting that is a secret, as `--kafka-conf=NAME=VALUE`."""
    if _PASSWORD.search(word):
        return True
    names = word.split("=")
    values = ["=".join(names[number:]) for number in range(1, len(names))]
    return any(
        (is_secret(name) or is_secret_of_service(name)) and bool(value) and not value.startswith("${env:")
        for name, value in zip(names, values, strict=False)
    )
