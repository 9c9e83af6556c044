"""Documents and modules are plain: short sentences, and nothing for which `scripts/prose.py` has a plainer form."""

from __future__ import annotations

import pytest

import prose
import prose_of_code

GOOD = (
    "There is no broker, there still is no lease, and the name is no longer taken. It is no more than a number.",
    "If there is none, the cleaner has not started. Records that have not expired remain.",
    "MapR's off is none, its zlib is gzip.",
    "Is it that of 10 records 3 are new? The command stops, as there is no space.",
    "Of the 49 tests, 43 pass. The size of a log: its bytes.",
    "Lithify also reads topics. After an error, see how to troubleshoot it. Look for the offset.",
    "| a | `is no x` |\n| --- | --- |\n",
    "```\nthose of\n```",
    "<!-- those of -->\n![those of](a.svg)\n[text](those-of.md)",
    " ".join(["word"] * 35) + ". " + " ".join(["Word"] * 35) + ".",
    "\n".join(f"- {' '.join(['word'] * 20)}" for _ in range(3)),
    f"{' '.join(['word'] * 20)}:\n\n1. {' '.join(['word'] * 20)}\n2. {' '.join(['word'] * 20)}",
    f"| {' '.join(['word'] * 20)} | {' '.join(['word'] * 20)} |",
)
BAD = (
    "The target is no replica.",
    "Some of them are none.",
    "A table that the lake has not, or has.",
    "Offsets are those of Kafka.",
    "Its name is\nthat of the topic.",
    "Sizes are rounded, as there.",
    "It prints the same as from the lake.",
    "| `source` | of a replica: where it comes from |",
    "It runs also if nothing is due.",
    "In trouble, repair the topic.",
    "A cleaner looks at every topic.",
    "Each kept version has a tag.",
    " ".join(["word"] * 36),
    " ".join(["word"] * 18) + " `two words`; " + " ".join(["word"] * 17),
    "> " + " ".join(["word"] * 36),
    f"| {' '.join(['word'] * 36)} |",
)


@pytest.mark.parametrize("text", GOOD)
def test_good_text_is_let_through(text):
    assert list(prose.findings(text)) == []


@pytest.mark.parametrize("text", BAD)
def test_what_has_a_plainer_form_is_found_once(text):
    assert len(list(prose.findings(text))) == 1


def test_every_pattern_has_a_text_that_it_finds():
    seen = " ".join(finding for text in BAD for _, finding in prose.findings(text))
    assert [better for better in prose.PATTERNS.values() if f"write '{better}'" not in seen] == []


def test_a_finding_names_the_line_in_which_its_sentence_begins():
    page = "# Title\n\n```\ncode\n```\n\nFine text\nof two lines. Here is\nno sentence. This is no\nsentence.\n"
    assert [line for line, _ in prose.findings(page)] == [8, 9]


MODULE = '''"""A module.

Its names are those of Kafka.
"""

FORTY = 40  # those of Kafka
"""Seconds; that of the lease is no more.

    those of | a diagram

- Its name is that
  of the topic.
"""


# Offsets are
# those of Kafka.
@click.option("--x", help="Runs also if"
    f" {FORTY} are due.")
@parameters.pairs("--config", "A target that is no replica.")
def verb():
    """Runs.

    \\b
    Examples:
      lithify those of
    """
    what = "its names" if FORTY else f"{FORTY} that is no replica"  # noqa: X1 - those of Kafka
    say("nothing to do",
        "no more than that of Kafka")
    raise RefusedError(f"{FORTY} is none", hint="look at those of Kafka first"
        " and go on")


# noqa: X1 - those of Kafka
class Verb:
    """Kept versions have a tag."""
'''


def test_of_a_module_docstrings_comments_help_and_messages_are_checked():
    found = {first + line - 1 for first, text in prose_of_code.texts(MODULE) for line, _ in prose.findings(text)}
    assert sorted(found) == [3, 7, 11, 16, 18, 20, 28, 30, 31, 37]


@pytest.mark.parametrize("code", ["look_at", "kept.version max.bytes", "SELECT none FROM x", "a=b c=d", r"\bis\s+no\b"])
def test_a_literal_without_two_words_beside_each_other_is_no_message(code):
    assert list(prose_of_code.texts(f"x = {code!r}\n")) == []


@pytest.mark.parametrize(
    "docstring",
    [
        "Copies.\n\n    Args:\n        topic: that of Kafka\n    Returns:\n        those of Kafka\n    ",
        "Copies.\n\n    >>> those of\n",
        "A file:\n\n      those of -> file\n      is no     -> file\n\n    The end.",
        "Seconds; the default is None or nothing.",
        "before  [ those of ]   [ is no ]\nafter   [ ] ─► those of",
        "Runs.\n\n    \b\n    Examples:\n      lithify those of\n",
    ],
)
def test_code_within_a_docstring_is_no_finding(docstring):
    assert list(prose.findings(prose_of_code.without_code(docstring))) == []


@pytest.mark.parametrize(
    ("checked", "listed"), [(prose.pages, prose.PAGES_TO_EDIT), (prose.modules, prose.MODULES_TO_EDIT)]
)
def test_documents_and_modules_are_plain(checked, listed):
    edited = sorted(set(checked()) - set(prose.to_edit(listed)))
    assert [fault for name in edited for fault in prose.faults(name)] == []


@pytest.mark.parametrize(
    ("checked", "listed"), [(prose.pages, prose.PAGES_TO_EDIT), (prose.modules, prose.MODULES_TO_EDIT)]
)
def test_the_lists_of_files_to_edit_only_shrink(checked, listed):
    """A file that is clean leaves its list, by `scripts/prose.py --shrink`, and cannot come back unclean."""
    names = prose.to_edit(listed)
    assert names == sorted(set(names))
    assert [name for name in names if name not in checked() or not prose.faults(name)] == []
