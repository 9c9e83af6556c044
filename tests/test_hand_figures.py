"""No document has a measured figure by hand: `scripts/hand_figures.py` finds those."""

from __future__ import annotations

import pytest

import hand_figures

MEASURED = (
    "An append takes 25 ms.",
    "It took 1.3 s on two cores.",
    "Reading: 35 MB/s without a limit.",
    "The process takes 40 MB.",
    "It copies 200,000 records per second.",
    "It copies 147,000 records per CPU-second of both.",
    "The worker held 0.33 GiB.",
    "Opening it costs about 4 seconds.",
    "A round takes 3 to 4 minutes.",
    "It needs 20 seconds of processor time.",
    "A round is three times faster than before.",
    "It is 2.5 times as fast.",
    "A commit takes a third less processor time.",
    "| 1.3 s |",
)
NOT_MEASURED = (
    "A cleaner checks all topics every 15 seconds.",
    "A task takes at most 1 GiB.",
    "Set `min.compaction.lag.ms=5 s` or `20MB/s`.",
    "```\nSpark started in 1.5 s\n```",
    "It waits `--interval` (15 s), and for an answer `--timeout` (default 30s).",
    "It retries after twice as long each time.",
    "A segment has 128 MiB. It polls five times per second.",
    "A lookup takes <!-- figures: get by index -->27 ms<!-- / -->.",
    "<!-- figures: cost -->\n\n| 1.3 s |\n\n<!-- / -->",
    "The two times differ.",
)


@pytest.mark.parametrize("text", MEASURED)
def test_a_measured_figure_is_found(text):
    assert len(list(hand_figures.findings(text))) == 1


@pytest.mark.parametrize("text", NOT_MEASURED)
def test_settings_limits_code_and_generated_figures_are_let_through(text):
    assert list(hand_figures.findings(text)) == []


@pytest.mark.parametrize("page", hand_figures.pages())
def test_no_page_has_a_measured_figure_by_hand(page):
    assert hand_figures.faults(page) == [], "see 'Figures in documents' in bench/README.md"


def test_what_is_allowed_is_on_its_page():
    assert hand_figures.unneeded() == []
