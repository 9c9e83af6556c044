"""Pulsar's own tests of compaction, unchanged, with a round of Lithify in place of every compaction.

    python -m peer_suite.run [--pulsars] [CLASS | CLASS.METHOD]...

    TestNG, brokers in its JVM ──► ZooKeeper, bookie        both real, in place of the tests' mocks
             │ a broker compacts
             └──────► rounds by HTTP, on one Spark session

`excused.json` says which tests do not pass, and why. The exit code is 1 if a test fails that is not in it, or if one in
it passes. With `--pulsars` Pulsar's own compactor runs instead: it shows what fails for other reasons than a round.
`just peer-suite` calls this; it needs Maven and a JDK.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

from lithify.spark.session.start import session_factory
from peer_suite.rounds_server import RoundsServer
from support.pulsar.jars import jars_of, pulsar_jars
from support.pulsar.server import JVM, LOGGING, a_pulsar

HERE = Path(__file__).parent
CLASSES = (
    "CompactionTest",
    "CompactorTest",
    "EventTimeOrderCompactorTest",
    "GetLastMessageIdCompactedTest",
    "CompactionRetentionTest",
    "CompactedTopicTest",
)
NO_ROUNDS = "-"


def run(wanted: Sequence[str], *, pulsars: bool, log: Path) -> dict[str, str]:
    """By test, `passed` or why it did not. What brokers and tests say goes to `log`."""
    with tempfile.TemporaryDirectory(prefix="peer-suite") as scratch, a_pulsar() as server:
        folder, results = Path(scratch), Path(scratch) / "results"
        (folder / "log4j2.properties").write_text(LOGGING.replace("INFO", "WARN"))
        _certificates(folder / "src" / "test" / "resources")
        with _rounds(pulsars=pulsars) as rounds, log.open("wb") as out:
            command = [*_java(folder), "PeerSuite", server.metadata_url.removeprefix("zk:"), str(results), rounds]
            ended = subprocess.run([*command, *_chosen(wanted)], stdout=out, stderr=out, check=False, cwd=folder)
        assert ended.returncode == 0 and results.exists(), f"the tests did not run: see {log}"
        return _outcomes(results.read_text().splitlines())


@contextmanager
def _rounds(*, pulsars: bool) -> Iterator[str]:
    if pulsars:
        yield NO_ROUNDS
        return
    session = session_factory(None, {"spark.master": "local[2]"})()
    try:
        with RoundsServer(session, pulsar_jars()).listening() as address:
            yield address
    finally:
        session.stop()


def _certificates(folder: Path) -> None:
    """The tests read their keys from the folder of their sources; the keys are in the jar of the tests."""
    (tests,) = jars_of("pulsars-own-tests", HERE / "pom.xml").glob("pulsar-broker-*-tests.jar")
    with ZipFile(tests) as jar:
        jar.extractall(folder, [name for name in jar.namelist() if name.startswith("certificate/")])


def _java(folder: Path) -> list[str]:
    """The tests' JVM, once the program beside this one is compiled."""
    compiler = shutil.which("javac")
    assert compiler, "a JDK is needed to compile PeerSuite.java, and there is no `javac` on the PATH"
    jars = f"{jars_of('pulsars-own-tests', HERE / 'pom.xml')}/*"
    subprocess.run([compiler, "-cp", jars, "-d", str(folder), str(HERE / "PeerSuite.java")], check=True)
    logging = f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
    attach = ("-Djdk.attach.allowAttachSelf=true", "-XX:+EnableDynamicAgentLoading")
    java = str(Path(compiler).with_name("java"))
    return [java, "-Xmx1g", *JVM, *attach, logging, "-cp", f"{folder}:{jars}"]


def _chosen(wanted: Sequence[str]) -> list[str]:
    """As the program takes them: `package.CLASS#METHOD`."""
    return ["org.apache.pulsar.compaction." + one.replace(".", "#") for one in wanted]


def _outcomes(lines: Sequence[str]) -> dict[str, str]:
    """Of a test that ran with several parameters, the first failure. A test that was tried again counts once."""
    outcomes: dict[str, str] = {}
    for line in lines:
        told = json.loads(line)
        outcome = "passed" if told["outcome"] == "passed" else f"{told['outcome']}: {told['error'][:300]}"
        if outcomes.get(told["test"], "passed") == "passed":
            outcomes[told["test"]] = outcome
    return outcomes


def excused() -> Mapping[str, str]:
    """By test, why it does not pass."""
    found: Mapping[str, str] = json.loads((HERE / "excused.json").read_text())
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="peer_suite.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tests", nargs="*", default=CLASSES, metavar="CLASS[.METHOD]")
    parser.add_argument("--pulsars", action="store_true", help="with Pulsar's own compactor")
    parser.add_argument("--log", type=Path, default=Path(tempfile.gettempdir()) / "peer-suite.log")
    given = parser.parse_args()
    outcomes = run(given.tests, pulsars=given.pulsars, log=given.log)
    known = {} if given.pulsars else excused()
    wrong = 0
    for test, outcome in sorted(outcomes.items()):
        passed = outcome == "passed"
        as_known = passed != (test in known)
        wrong += not as_known
        print(f"{'ok' if passed else 'EXCUSED' if as_known else 'FAILED':<8}{test}  {'' if passed else outcome}")
        if passed and not as_known:
            print(f"        it passes, though excused.json says: {known[test]}")
    passes = sum(outcome == "passed" for outcome in outcomes.values())
    print(f"{passes} of {len(outcomes)} pass, {wrong} other than excused.json says; brokers' output: {given.log}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
