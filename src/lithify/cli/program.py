"""The start of the program: Ctrl-C while it is loaded ends it at once, without a traceback.

Python raises `KeyboardInterrupt` wherever it is: in the middle of an import, whose traceback it prints, or in a
callback of one, where it is lost and the program continues.
"""

from __future__ import annotations

import signal


def main() -> None:
    """The entry point of the program."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # a shell has background jobs ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from lithify.cli.main import main as loaded

    signal.signal(signal.SIGINT, handler)
    loaded()
