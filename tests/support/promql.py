"""As much of PromQL as the files in `deploy` use: which metrics an expression names, and whether an alert would fire.

An alert is evaluated on what one process has rendered, now and before: without `for`, and without other processes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Collection

from support.scrapes import Values

FUNCTIONS = {"rate", "increase", "sum", "max", "topk", "histogram_quantile"}
_WORDS = {"by", "and"}
_STRIPPED = re.compile(r"\"[^\"]*\"|\[[^\]]*\]|\bby *\([^)]*\)")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_COMPARED = {">": operator.gt, "<": operator.lt, "==": operator.eq, "!=": operator.ne}
_COMPARISON = re.compile(r"(?P<left>.+?) (?P<how>>|<|==|!=) (?P<right>.+)")
_INCREASE = re.compile(r"increase\((\w+)\[\w+\]\)")


def labels_in(expression: str) -> set[str]:
    """The labels by which it selects and groups."""
    selected = re.findall(r"[{,] *(\w+) *(?:=~|!~|!=|=) *\"", expression)
    grouped = [label.strip() for group in re.findall(r"\bby *\(([^)]*)\)", expression) for label in group.split(",")]
    return {*selected, *grouped}


def metrics_in(expression: str) -> set[str]:
    """The names of metrics. Raises `ValueError` for what is not closed, and for a function that is not known here."""
    for opened, closed in ("()", "[]", "{}"):
        if expression.count(opened) != expression.count(closed):
            raise ValueError(f"{opened} without {closed}: {expression}")
    bare = re.sub(r"\{[^}]*\}", "", _STRIPPED.sub("", expression))
    called = set(re.findall(rf"({_NAME.pattern}) *\(", bare)) - _WORDS
    if unknown := called - FUNCTIONS:
        raise ValueError(f"unknown functions {unknown}: {expression}")
    return set(_NAME.findall(re.sub(r"\b\d[\d.e]*", "", bare))) - called - _WORDS - FUNCTIONS


def fires(expression: str, now: Values, before: Values) -> bool:
    """Whether an alert with this expression would fire. Raises `ValueError` for one of another form."""
    return all(_holds(part, now, before) for part in expression.split(" and "))


def _holds(comparison: str, now: Values, before: Values) -> bool:
    found = _COMPARISON.fullmatch(comparison.strip())
    if found is None:
        raise ValueError(f"no comparison: {comparison}")
    sides = [_value(found[side], now, before) for side in ("left", "right")]
    if None in sides:  # one that is not there: no alert
        return False
    return bool(_COMPARED[found["how"]](*sides))


def _value(side: str, now: Values, before: Values) -> float | None:
    factors = [_factor(factor.strip(), now, before) for factor in side.split(" * ")]
    product = 1.0
    for factor in factors:
        if factor is None:
            return None
        product *= factor
    return product


def _factor(text: str, now: Values, before: Values) -> float | None:
    if re.fullmatch(r"[\d.]+", text):
        return float(text)
    if found := _INCREASE.fullmatch(text):
        grown = now.get(found[1]), before.get(found[1])
        return None if grown[0] is None or grown[1] is None else grown[0] - grown[1]
    if _NAME.fullmatch(text) is None:
        raise ValueError(f"neither a number nor a metric: {text}")
    return now.get(text)


def unknown_metrics(expression: str, known: Collection[str]) -> set[str]:
    """Metrics of an expression that are not there; of a histogram there are three."""
    return {name for name in metrics_in(expression) if re.sub("_(bucket|sum|count)$", "", name) not in known} - set(
        known
    )
