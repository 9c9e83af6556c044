"""Documents are plain: short sentences, without the constructions for which `scripts/prose.py` has plainer ones."""

from __future__ import annotations

import pytest

import prose

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


def test_documents_are_plain():
    edited = sorted(set(prose.pages()) - set(prose.pages_to_edit()))
    assert [fault for name in edited for fault in prose.faults(name)] == []


def test_the_list_of_pages_to_edit_only_shrinks():
    """A page that is clean leaves it, by `scripts/prose.py --shrink`, and cannot come back unclean."""
    listed = prose.pages_to_edit()
    assert listed == sorted(set(listed))
    assert [name for name in listed if name not in prose.pages() or not prose.faults(name)] == []
