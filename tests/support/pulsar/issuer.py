"""An issuer of tokens over HTTPS, as hosted Pulsars have one: OAuth 2.0's client credentials, and where they are sent.

Its tokens are those of `secured.py`, which the broker of the tests trusts.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

from support.pulsar.secured import certificate, token_of

CLIENT, SECRET, AUDIENCE = "reader", "a secret of the tests", "urn:tests:pulsar"


@dataclass
class Issuer:
    """`asked` has every request for a token. `answer` is what it says to the next ones instead of a token."""

    url: str
    trust_certs_file: str
    expires_in: int = 3600
    answer: tuple[int, Any] | None = None
    asked: list[dict[str, str]] = field(default_factory=list)

    def credentials(self, folder: Path, secret: str = SECRET) -> Path:
        """The file of a service account."""
        (file := folder / "credentials.json").write_text(
            json.dumps({"type": "client_credentials", "client_id": CLIENT, "client_secret": secret})
        )
        return file

    def parameters(self, private_key: str) -> str:
        """`authParams`."""
        given = {"issuerUrl": self.url, "privateKey": private_key, "audience": AUDIENCE, "scope": "read"}
        return json.dumps({**given, "trustCertsFilePath": self.trust_certs_file})

    def token(self, form: dict[str, str]) -> tuple[int, Any]:
        self.asked.append(form)
        if self.answer is not None:
            return self.answer
        if form.get("client_secret") != SECRET or form.get("audience") != AUDIENCE:
            return 401, {"error": "access_denied", "error_description": form.get("client_secret")}
        return 200, {"access_token": token_of(form["client_id"]), "expires_in": self.expires_in}


@contextmanager
def an_issuer(folder: Path) -> Iterator[Issuer]:
    trusted, key = certificate(folder, "issuer")
    issuer = Issuer("", str(trusted))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/.well-known/openid-configuration"
            self._say(200 if known else 404, {"token_endpoint": f"{issuer.url}/token"} if known else {})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._say(*issuer.token({name: values[0] for name, values in form.items()}))

        def _say(self, status: int, content: Any) -> None:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", f"{issuer.url}/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(trusted, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    issuer.url = f"https://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
