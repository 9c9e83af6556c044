"""A Pulsar that wants TLS and tokens: `admin` may do all, `reader` may consume in one namespace, others nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lithify.pulsar.client.login.tls import Tls
from support.pulsar.server import PulsarServer
from support.servers.tcp_proxy import free_port

KEY = b"a key of the tests, 32 bytes long, at least"
PROVIDER = "org.apache.pulsar.broker.authentication.AuthenticationProviderToken"
PLUGIN = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


@dataclass(frozen=True, slots=True)
class SecuredPulsar:
    """The server, and its addresses with TLS."""

    server: PulsarServer
    service_url: str
    admin_url: str
    tls: Tls
    """That trusts the server."""


def token_of(role: str, key: bytes = KEY) -> str:
    """A JSON web token, signed by HMAC-SHA256."""
    parts = [json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "HS256"}, {"sub": role})]
    signed = b".".join(map(_url_safe, parts))
    return (signed + b"." + _url_safe(hmac.digest(key, signed, hashlib.sha256))).decode()


def certificate(folder: Path, name: str, host: str = "127.0.0.1") -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    made, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", f"/CN={host}"]
    command += ["-addext", f"subjectAltName=IP:{host}", "-keyout", str(key), "-out", str(made)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return made, key


@contextmanager
def a_secured_pulsar() -> Iterator[SecuredPulsar]:
    with tempfile.TemporaryDirectory(prefix="pulsar") as text:
        folder = Path(text)
        trusted, key = map(str, certificate(folder, "server"))
        port, admin_port = free_port(), free_port()
        settings = {
            "authenticationEnabled": "true",
            "authorizationEnabled": "true",
            "authenticationProviders": PROVIDER,
            "tokenSecretKey": f"data:;base64,{base64.b64encode(KEY).decode()}",
            "superUserRoles": "admin",
            "brokerClientAuthenticationPlugin": PLUGIN,
            "brokerClientAuthenticationParameters": f"token:{token_of('admin')}",
            "brokerServicePortTls": str(port),
            "webServicePortTls": str(admin_port),
            "tlsCertificateFilePath": trusted,
            "tlsKeyFilePath": key,
            "tlsTrustCertsFilePath": trusted,
        }
        server = PulsarServer(folder, settings)
        server.speak_as(token_of("admin"))
        try:
            server.start()
            url, admin_url = f"pulsar+ssl://127.0.0.1:{port}", f"https://127.0.0.1:{admin_port}"
            yield SecuredPulsar(server, url, admin_url, Tls(trusted))
        finally:
            server.stop()


def _url_safe(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
