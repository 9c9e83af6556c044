"""The options `--encoding`, `--key-encoding` and `--value-encoding`, the same in and out.

    --key-encoding hex --value-encoding base64      {"key":"00ff","value":"AP8=",...}

`--encoding` is for whatever the other two do not name, header values included.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from lithify.columnar.text.encodings import ENCODINGS, Encoding, Encodings


def encodings(function: Callable[..., Any]) -> Callable[..., Any]:
    """The three options, as one value `encodings`."""

    @wraps(function)
    def with_encodings(
        *given: Any, encoding: Encoding, key_encoding: Encoding | None, value_encoding: Encoding | None, **more: Any
    ) -> Any:
        return function(*given, encodings=Encodings.of(encoding, key_encoding, value_encoding), **more)

    choice = click.Choice(ENCODINGS)
    help_of = "How {} are written as text. Default: as --encoding says."
    for option in (
        click.option("--value-encoding", type=choice, help=help_of.format("values")),
        click.option("--key-encoding", type=choice, help=help_of.format("keys")),
        click.option(
            "--encoding", type=choice, default="utf-8", show_default=True, help="How bytes are written as text."
        ),
    ):
        with_encodings = option(with_encodings)
    return with_encodings


def query_of(encodings: Encodings) -> dict[str, str]:
    """The encodings as parameters of a request."""
    return {"encoding": encodings.headers, "key_encoding": encodings.key, "value_encoding": encodings.value}
