"""Requests to brokers over HTTP: Pulsar's admin interface.

Answers have a deadline and a largest size. Redirects, with which brokers send a client to the owner of a
topic, are followed with the token, but never from HTTPS to HTTP.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

import requests

from lithify.errors import BrokerError, InvalidSettingError, UnknownSourceError
from lithify.errors.redaction import one_line
from lithify.pulsar.client.broker_refusals import TEXT_CHARACTERS, TransientBrokerError
from lithify.pulsar.client.config import ClientConfig
from lithify.pulsar.client.login.answers import bounded, reason_of
from lithify.pulsar.client.login.tls import Adapter
from lithify.pulsar.client.names import TopicName, checked_count
from lithify.waits.deadline import within

REDIRECTS_AT_MOST: Final = 5
_REDIRECTS: Final = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Admin:
    """Calls raise `BrokerError`, and `UnknownSourceError` for what is not there."""

    config: ClientConfig

    def __post_init__(self) -> None:
        if not self.config.admin_url:
            hint = "give --admin-url, or webServiceUrl in client.conf"
            raise InvalidSettingError("the URL of the cluster's admin interface is missing", hint=hint)

    def internal_configuration(self) -> dict[str, Any]:
        """Where the cluster keeps its metadata, by Pulsar's names: `metadataStoreUrl`, `ledgersRootPath`."""
        return _object(self.get("brokers/internal-configuration"), "the internal configuration")

    def runtime_configuration(self) -> dict[str, Any]:
        """Settings of the broker that answers. Only superusers may request it."""
        return _object(self.get("brokers/configuration/runtime"), "the configuration")

    def internal_stats(self, topic: str) -> dict[str, Any]:
        """Ledgers and cursors of a topic that is not partitioned, or of one partition."""
        return _object(self.get(f"{_path(topic)}/internalStats"), f"{topic}: the internal statistics")

    def partitions(self, topic: str) -> int:
        """How many the topic has; 0: it is not partitioned."""
        metadata = _object(
            self.get(f"{_path(topic)}/partitions?checkAllowAutoCreation=false"), f"{topic}: its metadata"
        )
        return checked_count(topic, _number(metadata.get("partitions"), f"{topic}: its partitions"))

    def compaction_threshold(self, topic: str) -> int | None:
        """Bytes of backlog at which brokers compact the topic, by its policies or its namespace's; None: not set."""
        name = TopicName.parsed(topic).whole  # brokers refuse to tell policies of a partition
        threshold = self.get(f"{name.path}/compactionThreshold?applied=true")
        if threshold is None:
            threshold = self.get(f"namespaces/{name.tenant}/{name.namespace}/compactionThreshold")
        return None if threshold is None else _number(threshold, f"{topic}: its compaction threshold")

    def message_ttl_s(self, topic: str) -> int:
        """Seconds after which subscriptions lose a message, by whichever policy applies; 0: never.

        Only the tenant's admins may request it.
        """
        name = TopicName.parsed(topic).whole
        ttl_s = self.get(f"{name.path}/messageTTL?applied=true")
        return 0 if ttl_s is None else _number(ttl_s, f"{topic}: its message TTL")

    def id_published_at(self, topic: str, publish_time_ms: int) -> tuple[int, int]:
        """Ledger and entry of the first entry of one partition that came at or after a time, or of the last one."""
        what = f"{topic}: the message id at a time"
        message_id = _object(self.get(f"{_path(topic)}/messageid/{publish_time_ms}"), what)
        return _number(message_id.get("ledgerId"), what), _number(message_id.get("entryId"), what)

    def compaction_status(self, topic: str) -> dict[str, Any]:
        """`status` and `lastError` of the broker's own compaction of one partition."""
        return _object(self.get(f"{_path(topic)}/compaction"), f"{topic}: the status of its compaction")

    def subscription_properties(self, topic: str, subscription: str) -> dict[str, str]:
        """What is stored beside a subscription of one partition."""
        properties = self.get(f"{_path(topic)}/subscription/{quote(subscription, safe='')}/properties")
        what = f"{topic}: the properties of {subscription}"
        return {name: str(value) for name, value in _object(properties or {}, what).items()}

    def set_subscription_properties(self, topic: str, subscription: str, properties: Mapping[str, str]) -> None:
        """Stores these in place of all others."""
        self._ask("PUT", f"{_path(topic)}/subscription/{quote(subscription, safe='')}/properties", dict(properties))

    def delete_subscription(self, topic: str, subscription: str) -> None:
        """Of one partition, with its cursor; no consumer may have it."""
        self._ask("DELETE", f"{_path(topic)}/subscription/{quote(subscription, safe='')}")

    def unload(self, topic: str) -> None:
        """Closes a partition in its broker, which loads it again for the next client."""
        self._ask("PUT", f"{_path(topic)}/unload")

    def created(self, topic: str) -> str:
        """When one partition was created, in epoch ms as text: a recreated one has another time. Empty: not told."""
        stats = self.get(f"{_path(topic)}/stats")
        created = stats.get("topicCreationTimeStamp") if isinstance(stats, dict) else None
        return str(created) if created else ""

    def subscriptions(self, topic: str) -> tuple[str, ...]:
        """The names of the durable subscriptions of one partition."""
        return tuple(str(name) for name in self.get(f"{_path(topic)}/subscriptions") or ())

    def get(self, path: str) -> Any:
        """What JSON is at a path below `/admin/v2/`; None: nothing."""
        return self._ask("GET", path)

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        *others, last = self.config.admin_urls()
        for url in others:
            try:
                return self._answered(method, url, path, body)
            except TransientBrokerError:
                continue
        return self._answered(method, last, path, body)

    def _answered(self, method: str, base: str, path: str, content: object) -> Any:
        url = urljoin(f"{base.rstrip('/')}/", f"admin/v2/{path}")
        try:
            status, body = within(self.config.answer_s, lambda: self._followed(method, url, content))
        except (requests.exceptions.SSLError, ssl.SSLError) as error:
            hint = "check tlsTrustCertsFilePath"
            raise BrokerError(f"no TLS connection to the admin interface at {base}: {error}", hint=hint) from error
        except ValueError as error:  # of a host or a redirect, also those of `requests` that no other try changes
            raise BrokerError(
                f"the admin interface at {base} cannot be queried: {error}", hint="check its URL"
            ) from error
        except (requests.RequestException, TimeoutError, OSError) as error:
            hint = "check the admin URL, and that the cluster runs"
            message = f"the admin interface at {base} does not answer: {reason_of(error)}"
            raise TransientBrokerError(message, hint=hint) from error
        if status >= 300:
            raise _refused(status, body, url)
        try:
            return json.loads(body) if body.strip() else None
        except (ValueError, RecursionError) as error:
            hint = "check that the admin URL is the URL of a broker or proxy of Pulsar"
            raise BrokerError(f"{url} answers with something other than JSON", hint=hint) from error

    def _followed(self, method: str, url: str, content: object) -> tuple[int, bytes]:
        with requests.Session() as session:
            session.trust_env = False  # its .netrc would replace the token
            for _ in range(REDIRECTS_AT_MOST + 1):
                if urlsplit(url).scheme == "https":  # what is trusted takes 30 ms to load
                    session.mount("https://", Adapter(self.config.tls))
                with session.request(
                    method,
                    url,
                    json=content,
                    headers=self._headers(),
                    timeout=self.config.answer_s,
                    stream=True,
                    allow_redirects=False,
                ) as answer:
                    if answer.status_code not in _REDIRECTS:
                        return answer.status_code, bounded(answer, url)
                    other = urljoin(url, answer.headers.get("Location", ""))
                if (urlsplit(url).scheme, urlsplit(other).scheme) not in _SAFE_STEPS:
                    raise BrokerError(f"{url} redirects to {other}, which would expose the token")
                url = other
        raise BrokerError(f"{url}: more than {REDIRECTS_AT_MOST} redirects")

    def _headers(self) -> dict[str, str]:
        method, data = self.config.login()
        token = {"Authorization": f"Bearer {data.decode()}"} if method == "token" else {}
        return {"Accept": "application/json", **token}


_SAFE_STEPS: Final = (("http", "http"), ("http", "https"), ("https", "https"))


def _refused(status: int, body: bytes, url: str) -> BrokerError | UnknownSourceError:
    try:
        reason = str(json.loads(body)["reason"])
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = body.decode(errors="replace")
    message = f"{url}: the admin interface answers {status}: {one_line(reason, TEXT_CHARACTERS)}"
    if status in (401, 403):
        return BrokerError(message, hint="check authPlugin and authParams, and the rights of this role")
    if status == 404:
        return UnknownSourceError(message, hint="check tenant, namespace and topic")
    return TransientBrokerError(message) if status in (429, 500, 502, 503, 504) else BrokerError(message)


def _path(topic: str) -> str:
    return TopicName.parsed(topic).path


def _object(answer: Any, what: str) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise BrokerError(f"{what}: the admin interface returned something that is not an object")
    return answer


def _number(answer: Any, what: str) -> int:
    if not isinstance(answer, int) or isinstance(answer, bool):
        raise BrokerError(f"{what}: the admin interface returned something that is not a number")
    return answer
