"""The documents keep up with the code: generated pages are current, links lead somewhere."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import check
import compaction_picture
import concept_pictures
import lifetime_pictures
import lithify
import metrics_reference
import settings_reference
from lithify.metrics.table import METRICS
from support.pages.text import anchor_of, blocks_of, prose, section, text_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as Git forges make them."""
    return set(map(anchor_of, re.findall(r"^#+ +(.+)$", prose(text), re.MULTILINE)))


def dead_links(page: Path) -> list[str]:
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = page if not name else page.parent / name
        if not file.exists() or (anchor and anchor not in anchors(file.read_text("utf-8"))):
            dead.append(target)
    return dead


def command_under(anchor: str) -> str:
    """The first code block of a section of the README, which must be one line."""
    lines = blocks_of(section(text_of("README.md"), anchor))[0].text.splitlines()
    assert len(lines) == 1, f"{anchor}: {lines}"
    return lines[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert dead_links(page) == []


def test_a_dead_link_would_be_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A b\n[there](#a-b) [not there](#c) [no file](none.md)\n```\n[code](x.md)\n```\n")
    assert dead_links(page) == ["#c", "none.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_says_a_thing_twice(page):
    """As a merge leaves it that kept a page and its newer version."""
    text = prose(page.read_text("utf-8"))
    titles = re.findall(r"^# .+$", text, re.MULTILINE)
    paragraphs = Counter(part.strip() for part in text.split("\n\n") if len(part) > 80)
    assert len(titles) == 1
    assert [part for part, times in paragraphs.items() if times > 1] == []


def test_every_place_that_contributing_names_is_there():
    places = re.findall(r"`([\w.-]+(?:/[\w.-]+)*/[\w.-]*)`", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    roots = (ROOT, ROOT / "src" / "lithify", ROOT / "tests")
    assert len(places) > 30
    assert [place for place in places if not any((root / place).exists() for root in roots)] == []


def test_the_changelog_goes_back_to_the_first_version():
    """No edit near its top cuts off what follows, and what was released has a date."""
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    released = [re.fullmatch(r"\[([\d.]+)\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:]]
    assert headings[0] == "[Unreleased]"
    assert [heading for heading, found in zip(headings[1:], released, strict=True) if found is None] == []
    assert (released[0][1], released[-1][1]) == (lithify.__version__, "0.1.0")


def test_the_readme_has_one_command_to_run_and_one_to_test():
    assert command_under("run-it").endswith("lithify demo")
    assert command_under("test-it")


def test_ci_runs_what_the_readme_says():
    ran = [line for line in (ROOT / ".ci" / "run").read_text("utf-8").splitlines() if line and line[0] not in "#"]
    options = " ".join(f"--{name}" for name in check.BY_NAME)
    assert (len(ran), ran[-1]) == (5, f"{command_under('test-it')} {options}")
    assert f"CI runs `just check-all {options}`" in (ROOT / "README.md").read_text("utf-8")


def test_the_page_of_settings_is_current():
    assert settings_reference.PAGE.read_text("utf-8") == settings_reference.page(), "run `just docs`"


def test_the_page_of_metrics_is_current():
    assert metrics_reference.PAGE.read_text("utf-8") == metrics_reference.page(), "run `just docs`"
    assert metrics_reference.page().count("| `lithify_") == len(METRICS)


def test_the_settings_that_the_page_names_for_those_of_pulsar_are_there():
    """Each with the value that it says; `delete.retention.ms=0` for example."""
    from lithify.model.settings.topic_settings import settings_of, to_config

    table = settings_reference.page().partition("## For those who come from Pulsar")[2].partition("\n## ")[0]
    rows = [row.split("|")[2] for row in table.splitlines() if row.startswith("| ")][2:]
    named = [name for row in rows for name in re.findall(r"`([a-z]+(?:\.[a-z]+)+(?:=[^`]+)?)`", row)]
    known = to_config(settings_of({}, like="pulsar"))
    assert len(named) > 8
    assert [name for name in named if name.partition("=")[0] not in known] == []
    for name, _, value in (one.partition("=") for one in named):
        if value:
            settings_of({name: value}, like="pulsar")


def test_the_page_of_what_is_supported_names_the_locked_versions():
    page = (ROOT / "docs/reference/support.md").read_text("utf-8")
    lock = (ROOT / "requirements-dev.lock").read_text("utf-8")
    engines = (ROOT / "requirements-engines.lock").read_text("utf-8")  # where the DuckDB that reads topics comes from
    named = re.findall(r"(PyIceberg|DuckDB|confluent-kafka) (\d[\d.]*\d)", page)
    assert {name for name, _ in named} == {"PyIceberg", "DuckDB", "confluent-kafka"}
    for name, version in named:
        locked = engines if name == "DuckDB" else lock
        assert re.search(rf"^{name.lower()}=={re.escape(version)}(\.\d+)* ", locked, re.MULTILINE), (name, version)


def test_the_picture_shows_what_the_rules_say():
    assert compaction_picture.PICTURE.read_text("utf-8") == compaction_picture.picture(), "run `just docs`"
    before, first, last = compaction_picture.stages()
    assert (sorted(before.left), sorted(first.left), sorted(last.left)) == (
        list(range(9)),
        [4, 5, 6, 7, 8],
        [5, 6, 7, 8],
    )
    assert first.fates == ("dropped", "rewritten", "untouched")


@pytest.mark.parametrize("name", concept_pictures.PICTURES)
def test_the_pictures_of_the_concepts_are_current(name):
    drawn = concept_pictures.PICTURES[name]()
    assert (concept_pictures.IMAGES / name).read_text("utf-8") == drawn, "run `just docs`"
    assert f"](../images/{name})" in (ROOT / "docs/understand/concepts.md").read_text("utf-8")


def test_the_pictures_of_the_concepts_show_what_the_rules_say():
    rivals = concept_pictures.rivals()
    won = [concept_pictures.winner_by(strategy, rivals).offset for strategy in ("offset", "timestamp", "header")]
    assert won == [8, 5, 3]
    fates = [lifetime_pictures.fate(dead) for dead in (lifetime_pictures.DEAD, lifetime_pictures.MORE_DEAD)]
    assert fates == ["writes a mask", "rewrites it"]


def sections(page: str) -> dict[str, str]:
    """The text under each second-level heading of a page."""
    parts = re.split(r"^## (.+)$", (ROOT / "docs" / page).read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def verbs(group: click.Group, above: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from verbs(command, f"{above}{name} ")
        else:
            yield above + name, command


def shared_flags() -> set[str]:
    """The options that every verb has."""
    from lithify.cli.invocation import shared_options

    return {name for option in shared_options() for name in option.opts} | {"--help"}


def reference_of_verbs() -> dict[str, str]:
    """The text under each second-level heading of the pages of the command line, which each have other headings."""
    pages = [sections(f"reference/cli/{file.name}") for file in sorted((ROOT / "docs/reference/cli").glob("*.md"))]
    told = {heading: text for page in pages for heading, text in page.items()}
    assert len(told) == sum(map(len, pages))
    return told


def test_every_verb_and_option_is_in_the_reference():
    """Each option also below the synopsis."""
    from lithify.cli.verbs import lithify_group

    told = reference_of_verbs()
    shared = told["For all verbs"] + told["Records as text"]
    missing = []
    for name, command in verbs(lithify_group):
        here = told.get(name, "")
        missing += [name] if not here else []
        below = re.sub(r"`lithify [^`]*`", "", here, count=1) + shared
        for option in (o for p in command.params if isinstance(p, click.Option) for o in p.opts):
            missing += [f"{name} {option}"] if option not in below else []
    assert missing == []
    assert [heading for heading in told if heading not in {name for name, _ in verbs(lithify_group)}] == [
        "Verbs",
        "For all verbs",
        "Records as text",
    ]


_OPTION = re.compile(r"--[a-z-]+(?: (?!-)[^\s\[\]()|]+(?:\|(?!-)[^\s\[\]()|]+)*)?")


def in_help(command: click.Command) -> list[str]:
    """The options of a verb, each with its value, and then its arguments; `…` ends what is repeatable."""
    context = click.Context(command)
    options = [
        name
        if option.is_flag
        else f"{name} {option.make_metavar(context).strip('[]')}{'...' if option.multiple else ''}"
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
        if name not in shared_flags()
    ]
    arguments = [piece.strip("{}").replace("]...", "...]") for piece in command.collect_usage_pieces(context)[1:]]
    return [one.replace("...", "…") for one in (*sorted(options), *arguments)]


def in_synopsis(name: str, section: str) -> list[str]:
    """The same of the synopsis with which a section begins. The values of `--encoding` are not written out again."""
    found = re.match(rf"\s*`lithify {name}([^`]*)`", section)
    assert found is not None, name
    text = " ".join(found[1].split()).replace("]…", "…]").replace("encoding …", "encoding utf-8|base64|hex")
    arguments = [word for word in _OPTION.sub("", text).split() if re.search(r"\w", word)]
    return [*sorted(_OPTION.findall(text)), *arguments]


def test_synopses_are_those_of_the_help():
    from lithify.cli.verbs import lithify_group

    told = reference_of_verbs()
    for name, command in verbs(lithify_group):
        assert in_synopsis(name, told[name]) == in_help(command), name


def test_the_table_of_verbs_has_the_first_line_of_each_help():
    from lithify.cli.verbs import SUBJECTS, lithify_group

    table = reference_of_verbs()["Verbs"]
    rows = re.findall(r"^\| \[`([a-z -]+)`\]\([^)]*#([a-z-]+)\) \| (.+?) \|", table, re.MULTILINE)
    lines = [(name, command.get_short_help_str(limit=1000).rstrip(".")) for name, command in verbs(lithify_group)]
    assert rows == [(name, name.replace(" ", "-"), line) for name, line in lines]
    assert re.findall(r"^### (.+)$", table, re.MULTILINE) == list(SUBJECTS)


def printed_by_topics() -> dict[str, tuple[type, ...]]:
    """By section of the page of JSON, the dataclasses whose fields its verbs print."""
    from lithify.model import finding
    from lithify.reports import changed_settings, cut, overview, status, streams, topic_space, topics, verification
    from lithify.reports.rounds import plan, rate_limits, round
    from lithify.reports.warehouse import RepairedLog, RepairReport, UpgradeReport, WarehouseInfo
    from lithify.service.write.append import AppendResult, OffsetRange

    return {
        "compact": (round.RoundReport, round.LogReport, round.Losers, plan.PlanReport, plan.LogPlanReport),
        "status": (status.TopicStatus, status.LogStatus, status.GroupHold, status.ViewStatus, overview.TopicOverview),
        "topic info": (topics.TopicInfo, topic_space.Space),
        "topic alter": (changed_settings.AlterReport, changed_settings.SettingChange),
        "stream info": (streams.StreamInfo,),
        "stream edit": (streams.StreamEditReport, streams.EditedTopic, changed_settings.SettingChange),
        "stream delete": (streams.StreamDeleteReport,),
        "warehouse info": (WarehouseInfo,),
        "warehouse upgrade": (UpgradeReport,),
        "throttle": (rate_limits.RatesReport,),
        "retain": (cut.CutReport, cut.LogCut),
        "versions": (topics.VersionReport,),
        "sweep": (topic_space.SweepReport, topic_space.SweptFile),
        "repair": (RepairReport, RepairedLog),
        "verify": (verification.VerifyReport, finding.Finding),
        "produce": (AppendResult, OffsetRange),
    }


def printed_of_other_places() -> dict[str, tuple[type, ...]]:
    """The same for groups, cleaners, other systems and replicas."""
    from lithify.hydration.hydrating import HydrateReport
    from lithify.kafka.publisher.reports import PublishedLog, PublishReport, TranslatedPosition
    from lithify.reports import groups, ingest, quarantine, replicas
    from lithify.reports.gateway import tokens
    from lithify.reports.jobs import StandingJobInfo
    from lithify.reports.pulsar import leftovers, rounds
    from lithify.reports.replicas.status import ReplicaInfo, ReplicaStatus
    from lithify.reports.rounds import cleaned_logs
    from lithify.service.snapshot.consumer_narration import FollowedLog, KafkaNote

    return {
        "group list": (groups.GroupInfo,),
        "group describe": (groups.GroupLag,),
        "group reset": (groups.GroupReset, groups.ChangedPosition),
        "gateway job list": (StandingJobInfo,),
        "quarantine list": (quarantine.FailingLog,),
        "quarantine release": (quarantine.ReleaseReport,),
        "hydrate": (HydrateReport, FollowedLog, KafkaNote),
        "kafka ingest": (ingest.IngestBatch, ingest.IngestedLog, ingest.MissedRange, ingest.IngestNote),
        "kafka publish": (PublishReport, PublishedLog, TranslatedPosition, KafkaNote),
        "kafka clean": (cleaned_logs.CleanReport, cleaned_logs.CleanedLog),
        "kafka promote": (ingest.CopyPromoteReport,),
        "pulsar ingest": (ingest.IngestedEntries,),
        "pulsar compact": (rounds.PartitionReport, rounds.TopicRoundReport, rounds.PartitionPlan, rounds.EntryPlace),
        "pulsar uncompact": (rounds.UncompactReport, rounds.DroppedView),
        "pulsar leftovers": (leftovers.LeftoversReport, leftovers.LeftLedger),
        "replica add": (ReplicaInfo,),
        "replica status": (ReplicaStatus,),
        "replica verify": (replicas.ReplicaVerification,),
        "replica promote": (replicas.PromoteReport,),
        "token create": (tokens.NewToken,),
        "token list": (tokens.TokenInfo,),
    }


def test_every_key_of_the_json_is_in_the_reference():
    from lithify.model.finding import FindingKind
    from lithify.model.replicas.replica_progress import ReplicaStanding
    from lithify.reports.events import EventKind
    from lithify.reports.ingest import IngestReport
    from lithify.reports.jobs import JobStanding
    from lithify.reports.jobs.job_events import JobEventKind
    from lithify.reports.overview import Standing
    from lithify.reports.replicas.replica_events import ReplicaEventKind

    told, verbs_told = sections("reference/json-and-events.md"), reference_of_verbs()
    missing = [
        f"{where}: {field.name}"
        for where, values in (printed_by_topics() | printed_of_other_places()).items()
        for value in values
        for field in dataclasses.fields(value)
        if f"`{field.name}`" not in told[where]
    ]
    missing += [
        f"ingest: {field.name}"
        for field in dataclasses.fields(IngestReport)
        if f"`{field.name}`" not in told["kafka ingest"] + told["pulsar ingest"]
    ]
    words = [("verify", told, FindingKind), ("cleaner run", told, EventKind), ("replica run", told, ReplicaEventKind)]
    words += [("gateway job list", told, JobEventKind), ("gateway job list", verbs_told, JobStanding)]
    words += [("status", verbs_told, Standing), ("replica status", verbs_told, ReplicaStanding)]
    missing += [f"{where}: {word}" for where, texts, kind in words for word in kind if f"`{word}`" not in texts[where]]
    assert missing == []


def names_in(code: str) -> set[str]:
    """What a module may print as a key or as an event: its fields, keywords and strings."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


def names(text: str) -> list[str]:
    """The names in snake_case that a text has as code."""
    return re.findall(r"`([a-z]+(?:_[a-z]+)*)`", text)


def test_every_key_in_the_reference_is_printed():
    """Neither a key, an event, a kind nor a state remains there whose name the code does not have any more."""
    code = {name for file in (ROOT / "src").rglob("*.py") for name in names_in(file.read_text("utf-8"))}
    told = {heading: names(text) for heading, text in sections("reference/json-and-events.md").items()}
    for verb, text in reference_of_verbs().items():
        told[f"{verb}, its tables"] = [
            name for row in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE) for name in names(row)
        ]
    assert sum(map(len, told.values())) > 600
    assert [(where, name) for where, found in told.items() for name in found if name not in code] == []


def test_every_public_method_is_in_the_reference():
    from lithify.api.groups import Group
    from lithify.api.lake import Lake, Topic
    from lithify.coordination.groups.group_reader import GroupReader
    from lithify.service.read.fetch import LogReader, TopicReader

    told = sections("reference/python.md")
    kinds = [("`Lake`", Lake), ("`Topic`", Topic), ("Readers", LogReader), ("Readers", TopicReader)]
    kinds += [("Readers", GroupReader), ("Readers", Group)]
    missing = [
        f"{where}: {name}"
        for where, kind in kinds
        for name in dir(kind)
        if not name.startswith("_") and callable(getattr(kind, name)) and f"`{name}(" not in told[where]
    ]
    assert missing == ["Readers: poll"] * 3  # what the services use among themselves


def test_every_parameter_of_a_public_method_is_in_the_reference():
    """As its signature there has them: `sweep(*, delete=False, ...)`."""
    from lithify.api.gateways.standing_jobs import LakeStandingJobs
    from lithify.api.gateways.tokens import LakeTokens
    from lithify.api.groups import Group
    from lithify.api.lake import Lake, Topic
    from lithify.api.replicas import LakeReplicas
    from lithify.kafka import SnapshotConsumer, hydrate, publish
    from lithify.pulsar_consumer import PulsarSnapshotConsumer
    from lithify.spark_source import register

    told: dict[str, set[str]] = {}
    reference = (ROOT / "docs/reference/python.md").read_text("utf-8")
    for signature in re.findall(r"^(?:\| )?`(\w+\([^`]*)\)`", reference, re.M):
        name, _, parameters = signature.partition("(")
        told.setdefault(name, set()).update(part.partition("=")[0].strip() for part in parameters.split(","))
    public = [SnapshotConsumer, PulsarSnapshotConsumer, publish, hydrate, register]
    kinds = (Lake, Topic, Group, LakeReplicas, LakeStandingJobs, LakeTokens)
    public += [method for kind in kinds for name, method in vars(kind).items() if name[0] != "_"]
    missing = [
        f"{call.__name__}: {name}"
        for call in public
        if inspect.isfunction(call) or inspect.isclass(call)
        for name in inspect.signature(call).parameters
        if name != "self" and name not in told.get(call.__name__, ())
    ]
    assert missing == []


def test_every_code_of_an_error_is_under_its_exit_code():
    from lithify import errors
    from lithify.cli.main import USAGE

    told = sections("reference/errors.md")
    heads = {
        code: re.findall(r"^(?:\*\*|\| )`(\w+)`", told[heading], re.MULTILINE)
        for code, heading in [(1, "Exit code 1: failed"), (2, "Exit code 2: refused, nothing was changed")]
    }
    kinds = [k for k in vars(errors).values() if isinstance(k, type) and issubclass(k, errors.LithifyError)]
    codes = {k("").code: k.exit_code for k in kinds} | {USAGE: errors.RefusedError.exit_code}
    assert [code for code, exit_code in codes.items() if code not in heads[exit_code]] == []
    assert [code for code in (*heads[1], *heads[2]) if code not in codes] == []
    assert [code for code in heads[1] if code in heads[2]] == []


def test_every_page_can_be_reached_from_the_readme():
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            links = re.findall(r"\]\(([^)\s#:]+)(?:#[^)]*)?\)", prose(page.read_text("utf-8")))
            waiting += [(page.parent / link).resolve() for link in links]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in reached] == []


def test_scripts_are_executable():
    staged = subprocess.run(
        ["git", "ls-files", "-s", "scripts/setup", ".ci/run"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert [line.split()[0] for line in staged.splitlines()] == ["100755", "100755"]
