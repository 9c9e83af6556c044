"""`python -m lithify` is `lithify`."""

from __future__ import annotations

from lithify.cli.program import main

if __name__ == "__main__":
    main()
