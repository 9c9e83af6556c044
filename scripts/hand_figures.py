"""Figures on a page that look measured and are written by hand, which go stale.

    PYTHONPATH=bench scripts/hand_figures.py     those in the README, bench/README.md and docs, except for decisions

Measured figures come from docs/figures.json by `bench/figure_pages.py`, between marks that are left out here. So are
code, addresses and defaults. `ALLOWED` lists what looks like a measurement and is a limit or an example.
`tests/test_hand_figures.py` checks that nothing else is found, and that every entry there is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import prose
from published import MARK

_NUMBER = r"\d[\d,.]*"
_MULTIPLE = rf"(?:twice|(?:{_NUMBER}|two|three|four|five|six|ten|twenty|fifty|hundred) times)"
_SHARE = r"(?:half|third|quarter|fifth|sixth|tenth)s?"
_COMPARED = "faster|slower|smaller|larger|longer|shorter|cheaper|more|less"
_COST = r"(?:time|processor time|CPU|memory)"

MEASURED = re.compile(
    "|".join(
        [
            rf"{_NUMBER} ?(?:ms|s|µs|min)\b",
            rf"{_NUMBER} ?[kKMGT]B(?:/s)?\b",
            rf"{_NUMBER} ?[KMG]iB/s\b",
            r"\d[\d,]*\.\d+ (?:[KMGT]iB|seconds|minutes|hours)\b",
            rf"\b(?:took|takes?|taken|needs?|costs?|gains?|saves?) (?:about |some |only )?{_NUMBER}"
            rf"(?: (?:to|and|or) {_NUMBER})? (?:[KMGT]iB|milliseconds|seconds|minutes|hours)\b",
            rf"{_NUMBER} (?:\w+ ){{0,4}}(?:per (?:CPU[ -])?second|/s)\b",
            rf"{_NUMBER} (?:CPU[ -]seconds?|(?:seconds? )?of (?:a |the )?(?:processor|CPU)\b)",
            rf"\b{_MULTIPLE} (?:{_COMPARED}|as (?:fast|slow|small|large)|the (?:rate|speed|time))",
            rf"\b{_SHARE} (?:less|more|of the|of its) {_COST}\b",
        ]
    )
)
"""A duration or rate with a short unit, a decimal size, what something took, a ratio of costs."""

_DEFAULT = re.compile(r"\bCode \([^()]*\)|\(default [^()]*\)")
"""What an option or a setting is if it is not given, behind its name: `--interval` (15 s)."""

GENERATED = frozenset({"docs/understand/benchmarks.md", "docs/understand/measurements.md"})

_LOCKED = "the size of locked packages"
_EXAMPLE = "an assumption, not a measurement"
_LIMIT = "a limit"

ALLOWED: Mapping[str, Mapping[str, str]] = {
    "README.md": {"about 600 MB": _LOCKED},
    "docs/start/install.md": {"about 600 MB": _LOCKED},
    "docs/understand/scale.md": {
        "segments of 120 MB": _EXAMPLE,
        "records of 1 KB": _EXAMPLE,
        "keys has 1 TB": _EXAMPLE,
        "it has 10 GB": _EXAMPLE,
        "buffer of 8 GB": _EXAMPLE,
    },
    "docs/understand/security.md": {"2.06 GiB decoded": _LIMIT},
    "docs/operate/production.md": {"limits them to 8 GB": _LIMIT},
    "docs/operate/spark-clusters.md": {"five minutes (300 s)": _LIMIT, "After 5 s a line": _LIMIT},
    "docs/recover/replicas.md": {"at 20 MB per second": "the rate in the command above"},
}
"""By page, what stands there beside the number, as a text that contains it, and what it is."""


def pages() -> list[str]:
    """The pages that are checked, from the root."""
    checked = [name for name in prose.pages() if not name.startswith(("docs/decisions/", "CONTRIBUTING"))]
    return [name for name in ["bench/README.md", *checked] if name not in GENERATED]


def findings(page: str) -> Iterator[tuple[int, str]]:
    """Line and text of each figure on a page, with the words around it."""
    without = MARK.sub(lambda found: "\n" * found[0].count("\n"), page)
    for line, sentence in prose.sentences(without):
        plain = _DEFAULT.sub("Code", " ".join(sentence.split()))
        for found in MEASURED.finditer(plain):
            begin = max(0, found.start() - 40)
            yield line, plain[begin : found.end() + 30]


def faults(name: str) -> list[str]:
    """The findings on a page that are not allowed, as `path:line text`."""
    allowed = ALLOWED.get(name, {})
    text = (prose.ROOT / name).read_text("utf-8")
    return [f"{name}:{line} {found}" for line, found in findings(text) if not any(one in found for one in allowed)]


def unneeded() -> list[str]:
    """Entries of `ALLOWED` that allow nothing."""
    return [
        f"{name}: {text}"
        for name, texts in ALLOWED.items()
        for text in texts
        if not any(text in found for _, found in findings((prose.ROOT / name).read_text("utf-8")))
    ]


if __name__ == "__main__":
    print("\n".join(fault for name in pages() for fault in faults(name)))
