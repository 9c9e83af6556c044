"""Two files for programs that read documents: an index of all pages, and all of their texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from docs_site.pages import Entry, first_sentence, title_of

SUMMARY = (
    "Lithify compacts keyed topics (Kafka, Pulsar, CDC) in a data lake: a topic is an Apache Iceberg table with "
    "offsets, rounds of compaction run on Spark, and it remains readable as a log and as a table."
)


def index(pages: Mapping[str, str], entries: Sequence[Entry], version: str) -> str:
    """`llms.txt`: the pages by section, each with its place and a line. Other pages are under "Optional"."""
    parts = [f"# Lithify {version}\n\n> {SUMMARY}\n\nAll texts in one file: [llms-full.txt](llms-full.txt)\n"]
    for section in dict.fromkeys(entry.section for entry in entries):
        lines = [_line(one, pages[one.place]) for one in entries if one.section == section]
        parts.append(f"\n## {section}\n\n{''.join(lines)}")
    named = {entry.place for entry in entries}
    rest = [Entry("Optional", place, title_of(text)) for place, text in pages.items() if place not in named]
    return "".join(parts) + "\n## Optional\n\n" + "".join(_line(one, pages[one.place]) for one in rest)


def everything(pages: Mapping[str, str], entries: Sequence[Entry]) -> str:
    """`llms-full.txt`: the texts of all pages, those of the contents first, each below its place."""
    order = dict.fromkeys(["index.md", *(entry.place for entry in entries), *pages])
    return "\n".join(f"<!-- {place} -->\n\n{pages[place].strip()}\n" for place in order)


def _line(entry: Entry, text: str) -> str:
    said = entry.line or first_sentence(text)
    return f"- [{title_of(text)}]({entry.place}){': ' if said else ''}{said}\n"
