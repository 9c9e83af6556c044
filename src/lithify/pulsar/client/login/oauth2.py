"""Tokens by OAuth 2.0's client credentials, as Pulsar's `AuthenticationOAuth2` gets them and hosted Pulsars want them.

    authParams ──► issuerUrl/.well-known/openid-configuration ──► its token_endpoint ──► token, for so many seconds
                   privateKey: client_id, client_secret  ─────────────╯

A process fetches one token for all its connections, and another one before that expires. Only HTTPS is asked, and no
redirect followed, since a secret is sent. Secret and tokens are in no `repr`, error or log. A file with the
credentials is read anew at each use, and must be at the same place on all machines that read from the cluster.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, Self
from urllib.parse import unquote, unquote_to_bytes, urlsplit

import requests

from lithify.errors import BrokerError, InvalidSettingError
from lithify.errors.given_files import read_given
from lithify.errors.redaction import keep_secret
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.login.answers import bounded, reason_of
from lithify.pulsar.client.login.tls import Adapter, Tls
from lithify.waits.deadline import Deadline, within

METADATA: Final = "/.well-known/openid-configuration"
REFRESH_AT: Final = 0.9
"""Of the time for which a token is valid; Pulsar's Java client takes the same."""
LONGEST_S: Final = 24 * 3600.0
KEPT: Final = 64
"""Most tokens of a process."""
_CODE_CHARACTERS: Final = 60
_KNOWN: Final = ("issuerUrl", "privateKey", "audience", "scope", "wellKnownMetadataPath", "trustCertsFilePath")
_IGNORED: Final = ("type", "connectTimeout", "readTimeout")


@dataclass(frozen=True, slots=True)
class OAuth2:
    """What `authParams` say: who issues tokens, and where the credentials are (a URL, which may contain them)."""

    issuer_url: str
    private_key: str = field(repr=False)
    audience: str = ""
    scope: str = ""
    metadata_path: str = METADATA
    trust_certs_file: str = ""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Self:
        """Raises `InvalidSettingError`, without any value: each may be a secret."""
        if unknown := sorted(name for name in given if name not in (*_KNOWN, *_IGNORED)):
            names = ", ".join(name for name in unknown if re.fullmatch(r"[A-Za-z]{1,40}", name)) or "a name"
            raise InvalidSettingError(
                f"authParams of OAuth 2.0: {names} is not supported", hint=f"supported: {', '.join(_KNOWN)}"
            )
        if given.get("type", "client_credentials") != "client_credentials":
            raise InvalidSettingError("authParams: Lithify supports OAuth 2.0 only with type client_credentials")
        issuer, key, audience, scope, path, trusted = (str(given.get(name) or "").strip() for name in _KNOWN)
        if not _is_https(issuer):
            hint = "write it as https://HOST, as the credentials are sent to it"
            raise InvalidSettingError("issuerUrl of authParams is missing or is not an https:// URL", hint=hint)
        if not key.startswith(("file:", "data:")):
            hint = "write file:///path/to/credentials.json, or data:application/json;base64,..."
            raise InvalidSettingError("privateKey of authParams is missing or is not a file: or data: URL", hint=hint)
        if key.startswith("data:"):
            keep_secret(key)
        return cls(issuer, key, audience, scope, path or METADATA, trusted)

    def credentials(self) -> tuple[str, str]:
        """Client id and secret. Raises `BrokerError`."""
        what = "the data URL of privateKey"
        try:
            if self.private_key.startswith("data:"):
                text = _data_of(self.private_key)
            else:
                file = unquote(re.sub(r"^//[^/]*", "", self.private_key.removeprefix("file:")))
                what = file
                text = read_given(file)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not valid"
            raise BrokerError(
                f"the credentials cannot be read from {what}: {reason}", hint="check authParams"
            ) from None
        try:
            account = json.loads(text)
            client_id, secret = account["client_id"], account["client_secret"]
        except (ValueError, LookupError, TypeError, RecursionError):
            client_id = secret = None
        if not (isinstance(client_id, str) and isinstance(secret, str) and client_id and secret):
            hint = "use the JSON file of a service account, with type client_credentials"
            raise BrokerError(f"{what} does not have both client_id and client_secret", hint=hint)
        keep_secret(secret)
        return client_id, secret


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    fresh: Deadline | None
    """None: its issuer does not say for how long it is valid, so that it is used once."""

    @property
    def is_fresh(self) -> bool:
        try:
            return self.fresh is not None and self.fresh.left_s() > 0
        except TimeoutError:
            return False


_tokens: dict[OAuth2, _Token] = {}
_turn = Lock()
"""So that many connections at once ask once."""


def token_of(oauth2: OAuth2, answer_s: float) -> str:
    """A token that is valid for a while; each of at most two answers is waited for so long.

    Raises `BrokerError`, of which `TransientBrokerError` if the issuer is not reached.
    """
    if not _turn.acquire(timeout=2 * answer_s):
        raise TransientBrokerError(
            f"{oauth2.issuer_url}, which issues tokens, has not answered another connection of this program"
        )
    try:
        token = _tokens.get(oauth2)
        if token is None or not token.is_fresh:
            token = _fetched(oauth2, answer_s)
            _tokens.pop(oauth2, None)
            while len(_tokens) >= KEPT:
                _tokens.pop(next(iter(_tokens)))
            _tokens[oauth2] = token
        return token.text
    finally:
        _turn.release()


def _fetched(oauth2: OAuth2, answer_s: float) -> _Token:
    client_id, secret = oauth2.credentials()
    metadata = _answer(oauth2, answer_s, oauth2.issuer_url.rstrip("/") + oauth2.metadata_path, None)
    endpoint = metadata.get("token_endpoint")
    if not (isinstance(endpoint, str) and _is_https(endpoint)):
        raise BrokerError(f"{oauth2.issuer_url} has no token_endpoint with https", hint="check issuerUrl")
    form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret}
    form |= {name: value for name, value in (("audience", oauth2.audience), ("scope", oauth2.scope)) if value}
    answer = _answer(oauth2, answer_s, endpoint, form)
    token, seconds = answer.get("access_token"), answer.get("expires_in")
    if not isinstance(token, str) or not token:
        raise BrokerError(f"{endpoint} answers without an access_token")
    try:
        valid_s = min(float(seconds or 0), LONGEST_S)
    except (OverflowError, TypeError, ValueError):
        valid_s = 0.0
    return _Token(token, Deadline(valid_s * REFRESH_AT) if valid_s > 0 else None)


def _answer(oauth2: OAuth2, answer_s: float, url: str, form: Mapping[str, str] | None) -> dict[str, Any]:
    hint = "check issuerUrl and trustCertsFilePath of authParams"
    try:
        status, body = within(answer_s, lambda: _asked(oauth2, answer_s, url, form))
    except (requests.exceptions.SSLError, ssl.SSLError) as error:
        raise BrokerError(f"no TLS connection to {url}: {reason_of(error)}", hint=hint) from None
    except (requests.RequestException, TimeoutError, OSError, ValueError) as error:
        transient = not isinstance(error, ValueError)
        message = f"{url}, which issues tokens, does not answer: {reason_of(error)}"
        raise (TransientBrokerError if transient else BrokerError)(message, hint=hint) from None
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if status == 200 and isinstance(answer, dict):
        return answer
    code = str(answer.get("error", "")) if isinstance(answer, dict) else ""
    message = f"{url}, which issues tokens, answers {status}"
    if re.fullmatch(rf"[a-z_]{{1,{_CODE_CHARACTERS}}}", code) and code not in (form or {}).values():
        message += f": {code}"
    raise (TransientBrokerError if status in (429, 500, 502, 503, 504) else BrokerError)(
        message, hint="check issuerUrl, audience, scope, and the credentials in privateKey"
    )


def _asked(oauth2: OAuth2, answer_s: float, url: str, form: Mapping[str, str] | None) -> tuple[int, bytes]:
    with requests.Session() as session:
        session.trust_env = False
        session.mount("https://", Adapter(Tls(oauth2.trust_certs_file, verify_hostname=True)))
        with session.request(
            "GET" if form is None else "POST",
            url,
            data=form,
            headers={"Accept": "application/json"},
            timeout=answer_s,
            stream=True,
            allow_redirects=False,
        ) as answer:
            return answer.status_code, bounded(answer, url)


def _is_https(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        return False


def _data_of(url: str) -> bytes:
    kind, _, data = url.partition(",")
    content = unquote_to_bytes(data)
    return base64.b64decode(content) if kind.endswith(";base64") else content
