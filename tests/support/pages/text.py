"""Pages of the documents: their blocks of code, the commands in these, and the output that a page shows.

```sh        commands, one after the other
```console   commands after `$ `, each with what it prints
```          what the commands before print, or a picture
"""

from __future__ import annotations

import re
import subprocess
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = tuple(str(page.relative_to(ROOT)) for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))])
RUNNABLE = ("sh", "console", "python", "sql")
"""Languages of what a reader runs."""
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) +(.+)$", re.MULTILINE)
_SHOWN = re.compile(r"\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_VARYING = [
    (r"\d{4}-\d\d-\d\dT[\d:.]+Z?", "TIME"),
    (r'"timestamp":\d+', '"timestamp":TIME'),
    (r"[\d.]+ (?:B|KiB|MiB)\b", "SIZE"),
    (r"file://\S+|/\S*(?=/lithify-warehouse\b)", "PATH"),
    (r"\d+ min \d+ s|[\d.]+ (?:ms|s)\b", "DURATION"),
    (r" +", " "),
]
"""Patterns of what varies, and what stands for it. Padding varies with the sizes."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code, its language, and what a block without a language right behind it shows that it prints."""

    language: str
    text: str
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed into a shell; `shown` is what it prints there, empty if the page does not show it."""

    typed: str
    shown: str = ""


def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def blocks(page: str) -> list[Block]:
    return blocks_of(text_of(page))


def blocks_of(text: str) -> list[Block]:
    found = []
    for block in _BLOCK.finditer(text):
        behind = _SHOWN.match(text, block.end())
        found.append(Block(block[2], textwrap.dedent(block[3]), behind[1] if behind else ""))
    return found


def anchor_of(heading: str) -> str:
    """Of the text of a heading, as on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def section(text: str, anchor: str) -> str:
    """From the heading of an anchor to the next one that is not below it; all of it if the anchor is empty."""
    headings = list(_HEADING.finditer(_BLOCK.sub(lambda block: " " * len(block[0]), text)))
    for number, heading in enumerate(headings):
        if not anchor or anchor_of(heading[2]) == anchor:
            behind = (one.start() for one in headings[number + 1 :] if len(one[1]) <= len(heading[1]))
            return text[heading.start() : next(behind, len(text))]
    raise LookupError(f"no heading has the anchor {anchor}")


def programs(page: str, anchor: str = "", language: str = "python") -> list[str]:
    """The blocks of a language of a page, or of the section that an anchor names."""
    return [block.text for block in blocks_of(section(text_of(page), anchor)) if block.language == language]


def prose(text: str) -> str:
    """Without its blocks of code."""
    return _BLOCK.sub("", text)


def commands(block: Block) -> list[Command]:
    """Of a block of a shell's language."""
    if block.language == "console":
        return [Command(typed, shown) for typed, shown in _CONSOLE.findall(block.text)]
    return [Command(typed) for typed in _whole_commands(block.text)] if block.language == "sh" else []


def session(page: str) -> list[tuple[str, str]]:
    """The commands that a page shows with their output."""
    return [
        (command.typed, command.shown)
        for block in blocks(page)
        for command in commands(block)
        if block.language == "console"
    ]


def alike(text: str) -> list[str]:
    """Sizes, times and places differ from run to run."""
    for pattern, name in _VARYING:
        text = re.sub(pattern, name, text)
    return [line.strip() for line in text.strip().splitlines()]


def _whole_commands(text: str) -> Iterator[str]:
    """Each with all of its lines: a quotation, a pipe, a brace or a backslash may continue it."""
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        typed = "\n".join(lines)
        if not line.endswith("\\") and _is_whole(typed):
            if re.sub(r"^\s*#.*", "", typed, flags=re.MULTILINE).strip():
                yield typed
            lines = []
    assert not lines, "\n".join(lines)


def _is_whole(typed: str) -> bool:
    return subprocess.run(["/bin/bash", "-n", "-c", typed], capture_output=True, check=False).returncode == 0
