"""Kafka's own programs and clients of the broker's version, all in one JVM: none of them starts for itself.

python  ──py4j──►  one JVM     kafka-console-consumer.sh, kafka-topics.sh, ...     called in turn
                               KafkaConsumer, Connect's worker                      as objects
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from lithify.spark.session.java import find_java
from support.kafka.broker import MODULES, VERSION
from support.kafka.jars import Module, fetched
from support.processes.programs import SHORT_LIVED

TOOLS = tuple(
    Module("org.apache.kafka", name, VERSION)
    for name in ("kafka-tools", "connect-runtime", "connect-file", "connect-mirror")
)
LOGGING = """
rootLogger.level = WARN
rootLogger.appenderRef.err.ref = err
appender.err.type = Console
appender.err.name = err
appender.err.target = SYSTEM_ERR
appender.err.layout.type = PatternLayout
appender.err.layout.pattern = [%d] %p %m (%c)%n%throwable
"""
STOP_S = 30.0


@dataclass(frozen=True, slots=True)
class KafkaJvm:
    """`log` is what the programs have logged. For one thread."""

    gateway: JavaGateway
    log: Path
    exit_code: Any

    @property
    def jvm(self) -> Any:
        return self.gateway.jvm

    def properties(self, values: Mapping[str, str]) -> Any:
        made = self.jvm.java.util.HashMap()
        for name, value in values.items():
            made.put(name, value)
        return made

    def texts(self, *values: str) -> Any:
        """An array of Java's strings."""
        array = self.gateway.new_array(self.jvm.java.lang.String, len(values))
        for n, value in enumerate(values):
            array[n] = value
        return array

    def run(self, program: str, *arguments: str) -> str:
        """What a program prints, by its class; it must succeed."""
        system, printed = self.jvm.java.lang.System, self.jvm.java.io.ByteArrayOutputStream()
        before = system.out
        self.exit_code.set(None)
        system.setOut(self.jvm.java.io.PrintStream(printed, True, "UTF-8"))
        try:
            _named(self.jvm, program).main(self.texts(*arguments))
        finally:
            system.setOut(before)
        text = bytes(printed.toByteArray()).decode()
        assert not self.exit_code.get(), text + self.log.read_text()[-3000:]
        return text


def _named(jvm: Any, name: str) -> Any:
    for part in name.split("."):
        jvm = getattr(jvm, part)
    return jvm


def _exits_by(gateway: JavaGateway) -> Any:
    """A reference that gets the exit code of a program that would end the JVM."""
    jvm, of = gateway.jvm, gateway.jvm.java.lang.Class.forName
    handles, types = jvm.java.lang.invoke.MethodHandles, jvm.java.lang.invoke.MethodType
    nothing, number = jvm.java.lang.Void.TYPE, jvm.java.lang.Integer.TYPE
    code = jvm.java.util.concurrent.atomic.AtomicReference()
    sets = handles.publicLookup().findVirtual(code.getClass(), "set", types.methodType(nothing, of("java.lang.Object")))
    taken = gateway.new_array(jvm.java.lang.Class, 1)
    taken[0] = of("java.lang.String")
    sets = handles.dropArguments(sets.bindTo(code).asType(types.methodType(nothing, number)), 1, taken)
    procedure = of("org.apache.kafka.common.utils.Exit$Procedure")
    made = jvm.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(procedure, sets)
    jvm.org.apache.kafka.common.utils.Exit.setExitProcedure(made)
    return code


@contextmanager
def a_kafka_jvm(folder: Path) -> Iterator[KafkaJvm]:
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    folders = [fetched(f"kafka-{VERSION}", MODULES), fetched(f"kafka-tools-{VERSION}", TOOLS)]
    logging, log = folder / "log4j2.properties", folder / "tools.log"
    logging.write_text(LOGGING)
    with log.open("wb") as errors:
        port, token, process = launch_gateway(
            classpath=":".join(f"{jars}/*" for jars in folders),
            jarpath=str(py4j),
            java_path=str(find_java().executable),
            javaopts=["-Xmx512m", *SHORT_LIVED, f"-Dlog4j2.configurationFile={logging}"],
            redirect_stdout=errors,
            redirect_stderr=errors,
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
        )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True))
    try:
        yield KafkaJvm(gateway, log, _exits_by(gateway))
    finally:
        gateway.shutdown()
        process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
