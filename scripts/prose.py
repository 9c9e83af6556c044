"""The language of documents and modules: sentences that are too long, and constructions with a plainer form.

    scripts/prose.py FILE...     what has to change in these pages and modules; without one, in all
    scripts/prose.py --shrink    removes the files that are clean now from the two lists of files that are not

Code, addresses and comments of a page are not checked. A heading, an item of a list and a cell of a table are each a
text of their own. Code within a sentence counts as one word. `prose_of_code.py` finds the texts of a module, which are
docstrings, comments, messages and the help of commands. `tests/test_prose.py` checks every file except the pages in
`scripts/pages_to_edit.txt` and the modules in `scripts/modules_to_edit.txt`. Both lists only shrink.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import prose_of_code

ROOT = Path(__file__).resolve().parent.parent
PAGES_TO_EDIT = ROOT / "scripts" / "pages_to_edit.txt"
MODULES_TO_EDIT = ROOT / "scripts" / "modules_to_edit.txt"

SENTENCE_WORDS = 35

_NO_COMPARISON = r"(?!longer\b|more than\b|less than\b|other\b|\w+er than\b)"
_COUNTED = r"(?!\d|all\b|these\b|those\b|both\b|course\b)"

PATTERNS = {
    re.compile(rf"(?<!there )(?<!there still )\b(?:is|are|was|were) no {_NO_COMPARISON}\w+"): "is not a, are not",
    re.compile(r"(?<!there )\b(?:is|are|was|were) none\b(?!,)"): "is not one, are not",
    re.compile(r"\b(?:has|have|had) not(?=[.,;:)]|$| (?:a|an|the|any|its|their)\b)"): "does not have",
    re.compile(rf"\b(?:those|that) of {_COUNTED}"): "the noun again",
    re.compile(r"\bas there(?! (?:is|are|was|were|will|has|have|may|can|could|must)\b)"): "as in, with the noun",
    re.compile(r"\bas from\b"): "as, with the noun",
    re.compile(r"(?:^|[.;:(] )of (?:an?|the|each|every) [^.:;,]{1,40}:"): "a sentence with a verb",
    re.compile(r"\balso (?=(?:after|if|when|while|where)\b)"): "even",
    re.compile(r"\btroubles?\b"): "error",
    re.compile(r"\blook(?:s|ed|ing)? (?:at|after|into)\b"): "check",
    re.compile(r"\bkept versions?\b"): "retained version",
}
"""What to avoid, in texts in lower case, and what to write instead."""

_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->|<[a-z/][^>`]*>", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_ITEM = re.compile(r" *(?:[-*+]|\d+\.) +")
_END = re.compile(r"[.!?][\"')]*(?=\s+[\"'(]*[A-Z0-9])")


def findings(page: str) -> Iterator[tuple[int, str]]:
    """Line and finding, of each sentence of a page that is too long or has a construction to avoid."""
    for line, sentence in sentences(page):
        words = [word for word in sentence.split() if re.search(r"\w", word)]
        if len(words) > SENTENCE_WORDS:
            yield line, f"{len(words)} words in a sentence: {' '.join(words[:6])} ..."
        plain = " ".join(sentence.split()).lower()
        for pattern, better in PATTERNS.items():
            for found in pattern.finditer(plain):
                yield line, f"'{found[0].strip()}': write '{better}'"


def sentences(page: str) -> Iterator[tuple[int, str]]:
    """Each sentence of a page, with the line in which it begins."""
    for line, text in texts(page):
        begin = 0
        for end in [*(found.end() for found in _END.finditer(text)), len(text)]:
            sentence = text[begin:end].lstrip()
            yield line + text.count("\n", 0, end - len(sentence)), sentence
            begin = end


def texts(page: str) -> Iterator[tuple[int, str]]:
    """Paragraphs, headings, items of lists and cells of tables, without markup; each with its first line."""
    block: list[str] = []
    first = 0
    for number, line in enumerate([*_without_markup(page).splitlines(), ""], 1):
        item = _ITEM.match(line)
        apart = line.lstrip().startswith(("|", "#"))
        if block and (item or apart or not line.strip()):
            yield first, "\n".join(block)
            block = []
        if apart:
            yield from ((number, cell.strip("# ")) for cell in line.split("|") if cell.strip("# -"))
        elif line.strip():
            first = first if block else number
            block.append(line[item.end() :] if item else line.strip("> "))


def _without_markup(page: str) -> str:
    """The page with as many lines, in which code is a word that begins like a sentence."""
    for markup in (_FENCE, _COMMENT, _IMAGE):
        page = markup.sub(lambda found: "\n" * found[0].count("\n"), page)
    page = _CODE.sub(lambda found: "Code" + "\n" * found[0].count("\n"), page)
    page = _LINK.sub(lambda found: found[1] + "\n" * (found[0].count("\n") - found[1].count("\n")), page)
    return page.replace("*", "").replace("\\|", "/")


def pages() -> list[str]:
    """The documents that are held to it, from the root."""
    docs = (str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))
    return ["README.md", "CONTRIBUTING.md", *sorted(docs)]


def modules() -> list[str]:
    """The modules of the package that are held to it, from the root: those written by hand."""
    written = (ROOT / "src" / "lithify").rglob("*.py")
    return sorted(str(module.relative_to(ROOT)) for module in written if not module.name.endswith("_pb2.py"))


def to_edit(listed: Path) -> list[str]:
    """The files of a list, which are not clean yet."""
    return listed.read_text("utf-8").split()


def faults(name: str) -> list[str]:
    """The findings in a page or module, as `path:line finding`."""
    text = (ROOT / name).read_text("utf-8")
    parts = prose_of_code.texts(text) if name.endswith(".py") else [(1, text)]
    return [f"{name}:{first + line - 1} {finding}" for first, part in parts for line, finding in findings(part)]


def main() -> None:
    """Prints what is found, or shortens the lists."""
    if sys.argv[1:] == ["--shrink"]:
        for listed in (PAGES_TO_EDIT, MODULES_TO_EDIT):
            unclean = [name for name in to_edit(listed) if (ROOT / name).exists() and faults(name)]
            listed.write_text("".join(f"{name}\n" for name in unclean))
        return
    named = [str(Path(name).resolve().relative_to(ROOT)) for name in sys.argv[1:]]
    print("\n".join(fault for name in named or [*pages(), *modules()] for fault in faults(name)))


if __name__ == "__main__":
    main()
