"""The scripts for shells, which call this program for completions, and the program's side of it.

    lithify compact or<TAB>  ─►  _LITHIFY_COMPLETE=bash_complete lithify  ─►  plain,orders

They are click's scripts, except that Bash takes names with colons, and that no space follows `NAME=` and `STREAM/`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

PROGRAM = "lithify"
VARIABLE = "_LITHIFY_COMPLETE"


class Bash(BashComplete):
    """Gets the line as it was typed: Bash splits words at colons and `=`, and replaces what follows the last one."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' completion type value
    COMPREPLY=()
    for completion in $(env COMP_LINE="${COMP_LINE:0:COMP_POINT}" COMP_WORDBREAKS="$COMP_WORDBREAKS" \\
            %(complete_var)s=bash_complete "$1" 2>/dev/null); do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                COMPREPLY+=("$value")
                [[ $value == *[=/] ]] && compopt -o nospace
                ;;
        esac
    done
    return 0
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    _kept = 0
    """Characters of the last word that Bash keeps in front of a completion."""

    def get_completion_args(self) -> tuple[list[str], str]:
        line, breaks = os.environ["COMP_LINE"], os.environ.get("COMP_WORDBREAKS", "")
        words = split_arg_string(line)
        typed = re.split(r"\s", line)[-1]
        last = words.pop() if typed and words else ""
        value = last.partition("=")[2] if last.startswith("-") and "=" in last else last
        if not typed.startswith(("'", '"')):
            self._kept = max((value.rfind(character) for character in ":=" if character in breaks), default=-1) + 1
        return words[1:], last

    def format_completion(self, item: CompletionItem) -> str:
        return f"{item.type},{item.value[self._kept :]}"


class Zsh(ZshComplete):
    """Adds no space after `NAME=` and `STREAM/`."""

    source_template = ZshComplete.source_template.replace(
        "compadd -U -V unsorted -a completions\n",
        """local -a open=(${(M)completions:#*[=/]}) whole=(${completions:#*[=/]})
        if (( $#open )); then
            compadd -U -V unsorted -S '' -a open
        fi
        if (( $#whole )); then
            compadd -U -V unsorted -a whole
        fi
""",
    )


class Fish(FishComplete):
    """Takes descriptions whole that have commas. Fish itself adds no space after `NAME=` and `STREAM/`."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


SHELLS: Sequence[type[ShellComplete]] = (Bash, Zsh, Fish)
for shell in SHELLS:
    add_completion_class(shell)


def script(program: click.Command, name: str) -> str:
    """The script for a shell, to be evaluated by it."""
    kind = get_completion_class(name)
    assert kind is not None  # one of `SHELLS`
    return kind(program, {}, PROGRAM, VARIABLE).source()


def complete_if_asked(program: click.Command, obj: object) -> bool:
    """Prints completions where a shell asks for them, and returns whether one did. Errors are not for the prompt."""
    asked = os.environ.get(VARIABLE)
    if asked is None:
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    try:
        shell_complete(program, {"obj": obj}, PROGRAM, VARIABLE, asked)
        sys.stdout.flush()
    except Exception:  # such as a command line that makes no sense
        pass
    return True
