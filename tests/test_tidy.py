"""The house rules, read off the tree: sizes, names, layers that import-linter cannot see, leftovers.

Each rule is a function of a file's text that yields what it finds, so that a failure lists
everything at once as `path:line finding`, and so that each rule can be shown a file that breaks it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MODULE_LINES = 300
FUNCTION_LINES = 50

BANNED_WORDS = {
    "dedup": "compact",
    "dedupe": "compact",
    "deduplicate": "compact",
    "vacuum": "sweep",
    "gc": "sweep",
    "garbage": "sweep",
    "msg": "record",
    "message": "record",
    "messages": "record",
    "watermark": "compaction horizon, or log end offset",
    "marker": "tombstone",
    "lsn": "offset",
    "seqno": "offset",
    "shard": "partition",
    "looker": "watch",
    "lookout": "watch",
    "teller": "reporter",
    "marks": "dead positions, or change tokens",
    "grouping": "decisions",
    "versioned": "ordered: a version is one of a topic",
    "debt": "a round that is required",
    "revival": "reset",
    "consent": "confirmation",
    "ts": "timestamp",
    "util": "a name that says what it does",
    "utils": "a name that says what it does",
    "helper": "a name that says what it does",
    "helpers": "a name that says what it does",
    "misc": "a name that says what it does",
}
"""Words that are not used in names of ours, and the word of this project for the idea."""

BANNED_PHRASES = {
    "made again": "recreated",
    "made anew": "recreated",
    "started anew": "restarted",
    "let go of": "expired, released or deleted",
    "lets go of": "expires, releases or deletes",
    "nobody foresaw": "unexpected",
    "nobody can foresee": "unpredictable",
    "stood still": "stalled",
    "stands still": "stalls",
    "stand still": "stall",
    "taken back": "undone",
    "for good": "irreversibly, or for ever",
    "gone on with": "continued",
    "went on with": "continued",
    "whoever": "who acts",
    "somebody": "who acts",
    "anybody": "who acts",
    "everybody": "who acts",
    "sign of life": "heartbeat",
    "signs of life": "heartbeats",
}
"""Phrases that documents, comments, messages and tests do not use, and the plain words for them."""

FOREIGN_NAMES = {
    "max_message_bytes",
    "message_timestamp_type",
    "message_timestamp_after_max_ms",
    "has_message_available",
    "last_message_id",
    "last_message_position",
    "message_id",
    "message_ids",
    "messageid",
    "messageposition",
    "null_marker",
}
"""Names that Kafka and Pulsar gave; and an error's text is called its message everywhere."""

PULSARS_OWN = {"message", "messages", "marker"}
"""Words that modules below a folder `pulsar` or `pulsar_consumer` use as Pulsar does."""

PULSARS_NAMES = re.compile(r"message_?(id|position)s?", re.IGNORECASE)
"""Parts of names that are Pulsar's wherever they stand."""

CLOCKS_AND_CHANCE = {"time", "uuid", "random", "secrets"}
ABOVE_THE_CLOCK = {"cli", "api", "__init__.py"}
PROGRAMS = ("src/lithify/gateway/standing/guard.py", "src/lithify/gateway/client/")
"""What runs in a process of its own, where none can be given a clock."""
DEADLINES = "from time import monotonic\n"
"""What `waits` may import: it counts the seconds of a wait, which decide over no record."""

TEXT = {".py", ".md", ".toml", ".lock", ".svg", ".sh", ".txt", ".json", ".yml", ".yaml", ""}


@dataclass(frozen=True)
class File:
    """A file of the project: its path from the root, and its text."""

    path: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=self.path)

    @property
    def place(self) -> str:
        """Its folder or module within the package: `spark`, `api`."""
        return self.path.removeprefix("src/lithify/").partition("/")[0]

    def at(self, line: int, finding: str) -> str:
        return f"{self.path}:{line} {finding}"


@cache
def tracked() -> tuple[File, ...]:
    """Text files that are, or would be, in a commit."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True
    ).stdout.decode()
    paths = [name for name in listed.split("\0") if Path(name).suffix in TEXT and (ROOT / name).is_file()]
    return tuple(File(name, (ROOT / name).read_text("utf-8")) for name in paths if name)


def modules(*folders: str) -> list[File]:
    """Those written by hand."""
    written = (f for f in tracked() if f.path.endswith(".py") and not f.path.endswith("_pb2.py"))
    return [f for f in written if f.path.partition("/")[0] in folders]


def long_modules(file: File) -> Iterator[str]:
    lines = len(file.text.splitlines())
    if lines > MODULE_LINES:
        yield file.at(lines, f"{lines} lines")


def long_functions(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield file.at(node.lineno, f"{node.name} has {lines} lines")


def unexplained_modules(file: File) -> Iterator[str]:
    if not ast.get_docstring(file.tree):
        yield file.at(1, "no docstring")


def leftovers(file: File) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), 1):
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            yield file.at(number, line.strip())


def open_dataclasses(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree):
        for decorator in node.decorator_list if isinstance(node, ast.ClassDef) else ():
            text = ast.unparse(decorator)
            if text.startswith("dataclass") and "slots=True" not in text:
                yield file.at(decorator.lineno, f"{text} without slots")


def banned_names(file: File) -> Iterator[str]:
    banned = BANNED_WORDS.keys() - (PULSARS_OWN if {"pulsar", "pulsar_consumer"} & {*Path(file.path).parts} else set())
    for line, name in [*names_defined(file.tree), (1, Path(file.path).stem)]:
        for word in words(PULSARS_NAMES.sub("", name)) if name.lower() not in FOREIGN_NAMES | {"message"} else ():
            if word in banned:
                yield file.at(line, f"{name}: say {BANNED_WORDS[word]}")


def banned_phrases(file: File) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), 1):
        for phrase, plain in BANNED_PHRASES.items():
            if phrase in line.lower():
                yield file.at(number, f"{phrase}: say {plain}")


_PACKAGES = "|".join(folder.name for folder in (ROOT / "src" / "lithify").glob("[a-z]*/"))
_MODULE = re.compile(
    rf"(?<![\w./<{{-])(?:src/lithify/)?((?:tests|{_PACKAGES})(?:/[a-z_]+)+)(?:\.py)?(?![\w<{{*-]|\.md)"
)


def lost_modules(file: File) -> Iterator[str]:
    """`package/module` or `tests/folder/module` that headers, comments or documents name and the tree does not have."""
    for number, line in enumerate(file.text.splitlines(), 1):
        for found in _MODULE.finditer(line):
            places = (ROOT / root / found[1] for root in (".", "src/lithify", "tests", "tests/support"))
            if not any(place.is_dir() or place.with_suffix(".py").is_file() for place in places):
                yield file.at(number, f"{found[0]} is not in the tree")


def names_defined(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def printing(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree) if file.place != "cli" else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield file.at(node.lineno, "print")


def echoing(file: File) -> Iterator[str]:
    """One module prints what people read, as the other makes it harmless; a script for a shell is printed as it is."""
    if file.path not in ("src/lithify/cli/terminal/output.py", "src/lithify/cli/completion.py"):
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho"):
                yield file.at(node.lineno, "click.echo: call cli/terminal/output.py")


def commits_beside_the_gate(file: File) -> Iterator[str]:
    if file.path != "src/lithify/service/commit.py":
        for line, call in ((n.lineno, ast.unparse(n.func)) for n in ast.walk(file.tree) if isinstance(n, ast.Call)):
            if re.search(r"\bstore\.commit$", call):
                yield file.at(line, f"{call}: call service/commit.py, the one gate")


def pyspark_outside(file: File) -> Iterator[str]:
    if file.place not in ("spark", "spark_source"):
        yield from (file.at(line, "imports pyspark") for line, name in imported(file.tree) if name == "pyspark")


def clocks_below_api(file: File) -> Iterator[str]:
    if file.place in ABOVE_THE_CLOCK or file.path.startswith(PROGRAMS):
        return
    ours = file.text.replace(DEADLINES, "\n") if file.place == "waits" else file.text
    imports = imported(ast.parse(ours))
    yield from (file.at(line, f"imports {name}") for line, name in imports if name in CLOCKS_AND_CHANCE)
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today", "urandom"):
            yield file.at(node.lineno, ast.unparse(node))


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What a module imports when it runs: not what only a type checker sees."""
    unseen = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.partition(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


# Written in pieces, so that this file does not name them itself.
_HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "maven" + ".org", "maven.apache" + ".org", "npmjs" + ".org")
_HOMES = ("/wor" + "k/", "/roo" + "t/", "/hom" + "e/", "/User" + "s/")
_MACHINE = re.compile("|".join([*map(re.escape, _HOSTS), *(rf"(?<![\w.]){home}" for home in _HOMES)]))


def machine_bound(file: File) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), 1):
        if found := _MACHINE.search(line):
            yield file.at(number, found[0])


_IMPORT = re.compile(r"^ *from (\w[\w.]*) import (\w[\w, ]*|\([^)]*\))$", re.M)


def stale_imports(file: File) -> Iterator[str]:
    """Names of ours that are imported but not there: by modules, and by programs in strings for other processes."""
    for found in _IMPORT.finditer(file.text):
        module, names = found.groups()
        missing = [name for name in re.findall(r"(\w+)(?: as \w+)?", names) if not _defines(module, name)]
        line = file.text.count("\n", 0, found.start()) + 1
        yield from (file.at(line, f"from {module} import {name}") for name in missing)


def _defines(module: str, name: str) -> bool:
    """True of what is not ours."""
    top = module.partition(".")[0]
    root = next((root for root in (ROOT / "src", ROOT / "tests") if (root / top).is_dir()), None)
    if root is None or top in sys.stdlib_module_names or top == "kafka":  # kafka-python, and a folder of tests
        return True
    place = root / module.replace(".", "/")
    sources = (place / "__init__.py", place.with_suffix(".pyi"), place.with_suffix(".py"))  # `.pyi`: of generated code
    text = next((f.read_text("utf-8") for f in sources if f.is_file()), "")
    return (place / name).is_dir() or (place / f"{name}.py").is_file() or re.search(rf"\b{name}\b", text) is not None


RULES = {
    long_modules: ("src", "scripts", "examples", "bench"),
    long_functions: ("src", "scripts", "examples", "bench", "tests"),
    unexplained_modules: ("src", "scripts", "examples", "bench"),
    leftovers: ("src", "scripts", "examples", "bench"),
    open_dataclasses: ("src",),
    banned_names: ("src", "scripts", "examples", "bench"),
    printing: ("src",),
    echoing: ("src",),
    commits_beside_the_gate: ("src",),
    pyspark_outside: ("src",),
    clocks_below_api: ("src",),
    stale_imports: ("tests", "bench"),
}
"""Every rule, and the folders whose modules keep it."""

BREAKS = {
    long_modules: "\n" * 301,
    long_functions: "def f():\n" + "    x = 1\n" * 50,
    unexplained_modules: "import os",
    leftovers: "x = 1  # " + "TO" + "DO later",
    open_dataclasses: "@dataclass(frozen=True)\nclass A: ...",
    banned_names: "def dedupe_keys(): ...",
    banned_phrases: "# the topic was Made Again",
    lost_modules: "service/" + "gone ──► store",
    printing: "print(1)",
    echoing: "click.echo(1)",
    commits_beside_the_gate: "warehouse.store.commit(state, edit)",
    pyspark_outside: "def f():\n    from pyspark.sql import functions",
    clocks_below_api: "stamp = datetime.now()",
    stale_imports: 'PROGRAM = """\nfrom lithify.' + 'gone import x\n"""',
    machine_bound: 'path = "' + "/roo" + 't/x"',
}
"""A text that each rule finds fault with, so that none of them is blind."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_modules_keep_the_house_rules(rule):
    assert [finding for file in modules(*RULES[rule]) for finding in rule(file)] == []


@pytest.mark.parametrize("rule", BREAKS, ids=lambda rule: rule.__name__)
def test_every_rule_sees_what_breaks_it(rule):
    assert len(list(rule(File("src/lithify/service/some.py", BREAKS[rule])))) == 1


ROOM_FILES = 14
"""Most modules of one package beside its folders."""


def packages() -> set[str]:
    """The folders below `src/lithify`."""
    return {str(Path(file.path).parent.relative_to("src/lithify")) for file in modules("src")} - {"."}


def test_no_package_holds_more_modules_than_can_be_seen_at_a_glance():
    counts = Counter(Path(file.path).parent for file in modules("src") if not file.path.endswith("__init__.py"))
    crowded = {folder: count for folder, count in counts.items() if count > ROOM_FILES}
    advice = f"more than {ROOM_FILES}: move those of one subject into a folder"
    assert [f"{folder}: {count} modules, {advice}" for folder, count in crowded.items()] == []


def test_the_map_shows_every_package_and_nothing_else():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("```\nsrc/lithify/\n")[2].partition("```")[0]
    drawn, above = set(), [Path()]
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        for name in re.findall(r"[a-z_]+/(?= |$)", re.split(r" {2,}(?=\S)", line.strip())[0]):
            above[depth:] = [above[depth - 1] / name]
            drawn.add(str(above[depth]))
    undrawn = [f"{folder}/ is not in the map of CONTRIBUTING.md" for folder in packages() - drawn]
    gone = [f"{folder}/ is in the map of CONTRIBUTING.md only" for folder in drawn - packages()]
    assert undrawn + gone == []


@pytest.mark.parametrize("rule", (banned_phrases, lost_modules), ids=lambda rule: rule.__name__)
def test_documents_modules_and_tests_keep_to(rule):
    """All but this file, which spells what they may not."""
    texts = [file for file in tracked() if file.path.endswith((".md", ".py", ".txt"))]
    assert [finding for file in texts if file.path != "tests/test_tidy.py" for finding in rule(file)] == []


def test_no_file_names_a_machine_or_a_package_registry():
    assert [finding for file in tracked() for finding in machine_bound(file)] == []


def test_the_public_surface_is_what_we_promise():
    import lithify

    assert sorted(lithify.__all__) == [
        "AtTime",
        "Cursor",
        "Lake",
        "LithifyError",
        "Place",
        "Record",
        "RefusedError",
        "Topic",
        "open",
    ]
    assert [name for name in lithify.__all__ if not hasattr(lithify, name)] == []


def test_importing_the_package_imports_no_data_library():
    heavy = {"pyarrow", "pyiceberg", "pyspark", "duckdb", "numpy", "pandas"}
    script = f"import sys, lithify; print(sorted({heavy!r} & set(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "[]"


def test_every_error_is_drawn_where_it_stands_in_the_tree():
    from lithify import errors

    drawn: dict[str, tuple[str | None, int | None]] = {}
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ([│├└─ ]*)(\w+Error)\b *(\d?)", line):
            depth = len(found[1]) // 4
            above[depth:] = [found[2]]
            drawn[found[2]] = (above[depth - 1] if depth else None, int(found[3]) if found[3] else None)
    classes = {kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type)}
    defined = {name: kind for name, kind in classes.items() if issubclass(kind, errors.LithifyError)}
    assert sorted(drawn) == sorted(defined)
    for name, (parent, exit_code) in drawn.items():
        assert parent is None or defined[name].__base__ is defined[parent], name
        assert exit_code is None or defined[name].exit_code == exit_code, name


def test_every_rule_that_the_code_cites_is_in_the_guarantees():
    guarantees = (ROOT / "docs/guarantees.md").read_text("utf-8")
    promised = set(re.findall(r"^### (C\d+)$", guarantees, re.MULTILINE))
    cited = {(rule, file.path) for file in modules("src") for rule in re.findall(r"\bC\d{1,2}\b", file.text)}
    assert sorted(f"{path} {rule}" for rule, path in cited if rule not in promised) == []


LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-build.lock",
    "requirements-engines.lock",
    "requirements-site.lock",
)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_pins_every_package_by_hash_and_names_no_host(lock):
    text = (ROOT / lock).read_text("utf-8")
    packages = re.split(r"^(?=[a-z])", text, flags=re.MULTILINE)[1:]
    assert packages
    assert [p for p in packages if "==" not in p or "--hash=sha256:" not in p] == []
    assert "://" not in text


def test_the_lock_files_fit_what_the_project_asks_for():
    import tomllib

    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    asked = {
        "requirements.lock": project["project"]["dependencies"],
        "requirements-dev.lock": project["project"]["dependencies"] + project["dependency-groups"]["dev"],
        "requirements-build.lock": project["dependency-groups"]["build"],
        "requirements-engines.lock": project["dependency-groups"]["engines"],
        "requirements-site.lock": project["dependency-groups"]["site"],
    }
    for lock, requirements in asked.items():
        versions: dict[str, list[str]] = {}
        for name, version in re.findall(r"^([a-z0-9-]+)==([^ ]+)", (ROOT / lock).read_text("utf-8"), re.MULTILINE):
            versions.setdefault(name, []).append(version)
        for requirement in map(Requirement, requirements):
            found = versions.get(requirement.name.lower().replace("_", "-"), [])
            assert found and all(requirement.specifier.contains(v) for v in found), f"{lock}: {requirement}: {found}"
