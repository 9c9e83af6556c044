"""Commands of Lithify in documents and help parse: their verbs and options are there, with values that they take."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import takewhile

import click
import pytest

from lithify.cli.invocation import Invocation
from lithify.cli.verbs import lithify_group
from support.pages.lists import EMBEDDED, KAFKA, NOT_RUN, PULSAR, RUN_BY, unrun
from support.pages.text import PAGES, ROOT, blocks, blocks_of, prose, text_of
from support.pages.text import commands as commands_of

_PLACEHOLDERS = {"VERB", "TOPIC", "..."}


def typed_in(text: str) -> Iterator[str]:
    """What is typed in each block of a page's shell code."""
    for block in blocks_of(text):
        yield "".join(f"{command.typed}\n" for command in commands_of(block))


def spans(text: str) -> list[str]:
    """The code within the sentences of a text that is a command of Lithify."""
    return [" ".join(span.split()) for span in re.findall(r"`(lithify\s[^`]*)`", prose(text))]


def examples(group: click.Group) -> Iterator[str]:
    """The command lines in the help of every verb."""
    for command in group.commands.values():
        yield from re.findall(r"^ *(lithify (?:.*\\\n)*.*)$", command.help or "", re.MULTILINE)
        if isinstance(command, click.Group):
            yield from examples(command)


def commands(typed: str) -> Iterator[list[str]]:
    """The arguments of each call of Lithify in what is typed into a shell."""
    text = re.sub(r"(?:^|\s)#.*$", "", typed.replace("\\\n", ""), flags=re.MULTILINE)
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|;&<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if not word or not set(word) <= set("|;&\n"):
            words.append(word)
            continue
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words.pop(0)
        if words and words[0].rpartition("/")[2] == "lithify":
            yield list(takewhile(lambda one: one not in ("<", ">", ">>"), words[1:]))
        words = []


def refusal(arguments: list[str]) -> str:
    """What the program says of a command line before it does anything; empty if it would run it."""
    command: click.Command = lithify_group
    try:
        context = command.make_context("lithify", list(arguments), obj=Invocation())
        while isinstance(command, click.Group):
            name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert name is not None and found is not None
            command, context = found, found.make_context(name, rest, parent=context)
    except click.ClickException as error:
        return error.format_message()
    except click.exceptions.Exit:  # it printed its help or its version
        return ""
    return ""


def unknown(span: str) -> list[str]:
    """The verb, or the options, of a command in a sentence that are not there; the rest of it may be left out."""
    command: click.Command = lithify_group
    words = re.findall(r"[^\s\[\]()|…]+", span)[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(click.Context(command), name)
        if found is None:
            return [] if name in _PLACEHOLDERS else [name]
        command = found
    known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}
    flags = re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(words))
    return [flag for flag in flags if flag not in known]


@pytest.fixture(autouse=True)
def _files_that_examples_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """They need not be there."""
    monkeypatch.setattr(click.Path, "convert", lambda *arguments: arguments[1])


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_blocks_of_code_parse(page: str) -> None:
    told = [arguments for line in typed_in(text_of(page)) for arguments in commands(line)]
    assert [(arguments, said) for arguments in told if (said := refusal(arguments))] == []


@pytest.mark.parametrize("page", PAGES)
def test_commands_in_sentences_have_verbs_and_options_that_there_are(page: str) -> None:
    assert [(span, found) for span in spans(text_of(page)) if (found := unknown(span))] == []


def test_commands_in_errors_and_docstrings_have_verbs_and_options_that_there_are() -> None:
    texts = [(file, file.read_text("utf-8")) for file in sorted((ROOT / "src").rglob("*.py"))]
    told = [(file.name, span) for file, text in texts for span in re.findall(r"`(lithify [\w .:/=,<>{}…-]+)`", text)]
    assert len(told) > 20
    assert [(name, span, found) for name, span in told if (found := unknown(span))] == []


def test_examples_in_help_parse() -> None:
    told = [arguments for line in examples(lithify_group) for arguments in commands(line)]
    assert len(told) > 60
    assert [(arguments, said) for arguments in told if (said := refusal(arguments))] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_test_runs_each_block_of_a_page_or_a_list_has_the_reason(page: str) -> None:
    assert unrun(page, {*EMBEDDED, *KAFKA, *PULSAR}) == []


def test_the_lists_of_pages_name_what_there_is() -> None:
    everything = "".join(block.text for page in PAGES for block in blocks(page))
    assert [pattern for pattern in NOT_RUN if not re.search(pattern, everything, re.MULTILINE)] == []
    assert {*EMBEDDED, *KAFKA, *PULSAR} <= {*PAGES}
    assert [by for (page, _), by in RUN_BY.items() if page.split("/")[-1] not in (ROOT / by).read_text("utf-8")] == []


def test_a_page_that_no_test_runs_would_be_seen() -> None:
    assert unrun("docs/understand/deletes.md", ())


def test_what_is_wrong_would_be_seen() -> None:
    block = "```sh\nA=1 lithify topic create orders --partition 4 |\n  wc\n```\n"
    page = block + "See `lithify\ncompact T … --dry-run` and `lithify vacuum`."
    assert [refusal(arguments) != "" for line in typed_in(page) for arguments in commands(line)] == [True]
    assert [unknown(span) for span in spans(page)] == [["--dry-run"], ["vacuum"]]
    assert refusal(["truncate", "orders", "--to", "x"]) and refusal(["topic", "create"])
    assert not refusal(["topic", "describe", "orders", "--json"])
