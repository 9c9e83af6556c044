"""What encrypted connections trust and show, to brokers, admin interfaces and issuers of tokens: files in PEM.

Pulsar's Java clients can also have it in stores of Java (`useKeyStoreTls`, `AuthenticationKeyStoreTls`), which are
refused with the commands that write PEM files from them.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from requests.adapters import HTTPAdapter

from lithify.errors import InvalidSettingError
from lithify.errors.given_files import check_given

STORES: Final = {
    "tlsTrustStorePath": (
        "tlsTrustCertsFilePath=ca.pem",
        "keytool -list -rfc -keystore {store} > ca.pem",
    ),
    "tlsKeyStorePath": (
        "tlsCertificateFilePath=client.pem and tlsKeyFilePath=client.key",
        "keytool -importkeystore -srckeystore {store} -destkeystore client.p12 -deststoretype PKCS12; "
        "openssl pkcs12 -in client.p12 -nokeys -out client.pem; openssl pkcs12 -in client.p12 -nodes -nocerts "
        "-out client.key",
    ),
}
"""By name of the setting of a store, what to set instead, and how its file is made."""
PLUGIN: Final = "AuthenticationKeyStoreTls"
"""The `authPlugin` that shows the certificate of a store, which its `authParams` name."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files and strictness of encrypted connections. Empty: the system's trust store, no certificate of ours."""

    trust_certs_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    allow_insecure: bool = False
    verify_hostname: bool = False

    def context(self) -> ssl.SSLContext:
        """Raises `InvalidSettingError` for files that cannot be used."""
        names = [name for name in (self.trust_certs_file, self.certificate_file, self.key_file) if name]
        try:
            for name in names:
                check_given(name)  # OpenSSL would wait for one who writes into a pipe
            context = ssl.create_default_context(cafile=self.trust_certs_file or None)
            context.check_hostname = self.verify_hostname and not self.allow_insecure
            if self.allow_insecure:
                context.verify_mode = ssl.CERT_NONE
            if self.certificate_file:
                context.load_cert_chain(self.certificate_file, self.key_file or None)
        except (OSError, ssl.SSLError) as error:
            raise InvalidSettingError(f"the TLS files {', '.join(names)} cannot be used: {error}") from error
        return context


def check_no_stores(conf: Mapping[str, str], *, is_on: bool) -> None:
    """Raises `InvalidSettingError` for a `client.conf` with stores of Java, or if `is_on` says that it uses some."""
    given = {name: conf[name] for name in STORES if name in conf}
    names = list(given)
    if conf.get("authPlugin", "").endswith(PLUGIN):
        names.append(f"authPlugin={PLUGIN}")
        match = re.search(r"""keyStorePath"?\s*:\s*"?([^,"}]+)""", conf.get("authParams", ""))
        given.setdefault("tlsKeyStorePath", match[1] if match else "STORE")
    if not (given or is_on):
        return
    what = " and ".join(names) or "useKeyStoreTls=true"
    steps = [
        f"{command.format(store=given.get(name, 'STORE'))}; then set {instead}"
        for name, (instead, command) in STORES.items()
        if name in given or not given
    ]
    raise InvalidSettingError(
        f"{what} of client.conf: Lithify reads certificates and keys as PEM, not from Java key stores",
        hint=f"remove it and useKeyStoreTls, and write PEM files: {'. '.join(steps)}",
    )


class Adapter(HTTPAdapter):
    """HTTPS with the files and the strictness of `tls`."""

    def __init__(self, tls: Tls) -> None:
        self._context = tls.context()
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **more: Any) -> None:
        checks = {} if self._context.check_hostname else {"assert_hostname": False}
        super().init_poolmanager(connections, maxsize, block, **more, ssl_context=self._context, **checks)

    def cert_verify(self, conn: Any, url: str, verify: Any, cert: Any) -> None:
        """The context says what is trusted."""
