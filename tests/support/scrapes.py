"""What a scraper of metrics sees."""

from __future__ import annotations

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

Values = dict[str, float]
"""By name, with its labels behind it if there are any: `lithify_errors_total{error_code=Conflict}`."""


def values_of(text: str) -> Values:
    """The samples of a rendered text, each once."""
    found: Values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            name = f"{sample.name}{{{labels}}}" if labels else sample.name
            assert name not in found, name
            found[name] = sample.value
    return found


def scraped(port: int, host: str = "127.0.0.1") -> Values:
    """Over HTTP. Raises `OSError`."""
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return values_of(answer.read().decode())
