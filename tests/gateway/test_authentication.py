"""Who sends a request: tokens as they are and as an attacker sends them, against a real server."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest

from gateway.served import NOW_MS, SECRET, a_token, an_access, bearer, served
from lithify.errors import CoordinationError
from lithify.gateway.access import failures
from lithify.gateway.access.authentication import Authentication
from lithify.gateway.access.failures import Failures
from lithify.gateway.access.middleware import Access
from lithify.gateway.access.token_cache import TokenCache
from lithify.model.access.roles import ALL, Role
from lithify.model.access.tokens import token_text

ALICE = a_token("alice", "admin")
SHOP = a_token("shop", "produce:shop", token_id="00000000000000bb")
OLD = a_token("old", "admin", token_id="00000000000000cc", expires_ms=NOW_MS)
PRESENT = a_token("present", "admin", token_id="00000000000000dd", expires_ms=NOW_MS + 1)
TOKENS = (ALICE, SHOP, OLD, PRESENT)


@pytest.fixture(scope="module")
def one_gateway():
    """One that counts no failure: for its clock, hours pass between two of them."""
    with served(an_access(*TOKENS, failures=Failures(count(0, 10_000).__next__))) as gateway:
        yield gateway


@pytest.fixture
def gateway(one_gateway):
    one_gateway.seen.asked.clear()
    return one_gateway


def test_a_token_says_who_asks(gateway):
    assert gateway.ask("GET", "/x", bearer(ALICE)).json()["caller"] == "alice"
    assert gateway.ask("POST", "/x", bearer(PRESENT)).json()["caller"] == "present"
    assert gateway.ask("GET", "/x", {"Authorization": f"bEaReR  {token_text(ALICE.id, SECRET)}"}).status_code == 200


def test_without_a_token_only_what_is_open_is_answered(gateway):
    refused = gateway.ask("GET", "/x")
    assert (refused.status_code, refused.headers["Content-Type"]) == (401, "application/problem+json")
    assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    assert refused.json() == {
        "type": "about:blank",
        "title": "Unauthorized",
        "status": 401,
        "detail": "this gateway needs a token",
        "code": "AccessDenied",
        "hint": "send it as `Authorization: Bearer TOKEN`",
        "exit_code": 2,
    }
    assert gateway.ask("GET", "/healthz").status_code == 200
    assert gateway.ask("GET", "/healthz", {"Authorization": "Bearer nonsense"}).status_code == 200
    assert gateway.ask("POST", "/healthz").status_code == 401
    for path in ("/healthz/", "/%68ealthz", "/HEALTHZ", "/healthz/x", "/healthz%2f"):
        assert gateway.ask("GET", path).status_code == 401
    assert gateway.seen.asked == []


TEXT = token_text(ALICE.id, SECRET)
ARABIC_ONE = "\u0661".encode().decode("latin-1")


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "Bearer",
        "Bearer ",
        TEXT,
        f"Basic {TEXT}",
        f"Bearer{TEXT}",
        f"Bearer {TEXT},{TEXT}",
        f"Bearer {TEXT} {TEXT}",
        f"Bearer {TEXT[:-1]}",
        f"Bearer {TEXT}0",
        f"Bearer {TEXT[:-1]}0",
        f"Bearer {TEXT.upper()}",
        f"Bearer {TEXT.replace('lithify', 'Lithify')}",
        f"Bearer lithify_{ALICE.id}_",
        f"Bearer lithify_{ALICE.id}_{ALICE.secret_sha256}",
        f"Bearer lithify_{SHOP.id[:-1]}e_{SECRET}",
        f"Bearer lithify__{SECRET}",
        f"Bearer lithify_{ALICE.id}_{'0' * 64}",
        f"Bearer lithify_{ALICE.id}_{SECRET.replace('0', chr(0xB2))}",
        f"Bearer lithify_{ALICE.id}_{ARABIC_ONE * 64}",
        f"Bearer {'lithify_' * 2000}",
        "Bearer ' OR 1=1 --",
        f"Bearer {TEXT}\t.",
    ],
)
def test_a_forged_or_broken_token_is_refused(gateway, sent):
    status, problem = gateway.head("POST /x HTTP/1.1", f"Authorization: {sent}")
    assert (status, problem["code"], gateway.seen.asked) == (401, "AccessDenied", [])
    assert SECRET[:16] not in str(problem)


def test_a_token_is_taken_from_its_header_only(gateway):
    sent = [f"/x?access_token={TEXT}", f"/x?token={TEXT}", f"/{TEXT}"]
    assert [gateway.ask("GET", path).status_code for path in sent] == [401] * 3
    for header in ("Cookie", "X-Api-Key", "X-Authorization", "Proxy-Authorization"):
        assert gateway.ask("GET", "/x", {header: f"Bearer {TEXT}"}).status_code == 401


def test_an_expired_token_is_refused_and_named_only_to_who_has_it(gateway):
    assert "the token of old expired at 2023-11-14T" in gateway.ask("GET", "/x", bearer(OLD)).json()["detail"]
    stranger = gateway.ask("GET", "/x", bearer(OLD, "f" * 64)).json()["detail"]
    unknown = gateway.ask("GET", "/x", bearer(a_token("x", "admin", token_id="f" * 16))).json()["detail"]
    assert stranger == unknown == "the token is unknown or revoked"


def test_secrets_are_compared_in_constant_time(monkeypatch, gateway):
    """By the function that is made for it, whatever was sent."""
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("lithify.model.access.tokens.compare_digest", compare)
    assert gateway.ask("GET", "/x", bearer(ALICE, "0" * 64)).status_code == 401
    assert gateway.ask("GET", "/x", bearer(ALICE)).status_code == 200
    assert len(compared) == 2 and {len(text) for pair in compared for text in pair} == {64}


def test_a_role_is_for_its_stream(gateway):
    def appended(topic, token):
        return gateway.ask("POST", f"/topics/{topic}", bearer(token), b"abc")

    assert appended("shop%2Forders", SHOP).status_code == 200
    assert appended("shop/orders", SHOP).status_code == 200
    refused = appended("shops%2Forders", SHOP)
    assert refused.status_code == 403
    assert "the token of shop lacks the role produce for stream shops: it has produce:shop" in refused.text
    assert appended("Shop/orders", SHOP).status_code == 403
    assert appended("shop%252Forders", SHOP).status_code == 403
    assert appended("other/orders", ALICE).status_code == 200


def test_on_loopback_no_token_is_needed_unless_a_proxy_forwards():
    with served(an_access(ALICE, needs_token=False)) as gateway:
        assert gateway.ask("POST", "/x").json()["caller"] == "local"
        assert gateway.ask("POST", "/x", bearer(ALICE)).json()["caller"] == "alice"
        assert gateway.ask("POST", "/x", bearer(ALICE, "0" * 64)).status_code == 401  # not what it seems to be
        for header in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"):
            assert gateway.ask("POST", "/x", {header: "10.0.0.1"}).status_code == 401
        assert gateway.ask("POST", "/x", {**bearer(ALICE), "X-Forwarded-For": "10.0.0.1"}).status_code == 200


def test_without_a_database_no_token_counts():
    authentication = Authentication(None, lambda: NOW_MS, needs_token=False, is_loopback=False)
    with served(Access(authentication, Failures(time.monotonic), lambda: NOW_MS)) as gateway:
        assert gateway.ask("GET", "/x", bearer(ALICE)).status_code == 401
        assert gateway.ask("GET", "/x").json()["caller"] == "anyone"


def test_who_fails_too_often_is_told_to_wait_and_a_right_token_still_counts(monkeypatch):
    monkeypatch.setattr(failures, "AT_ONCE", 5)
    with served(an_access(ALICE, failures=Failures(lambda: 0.0))) as gateway:
        codes = [gateway.ask("GET", "/x", {"X-Forwarded-For": f"10.0.0.{n}"}).status_code for n in range(8)]
        assert codes == [401] * 5 + [429] * 3
        waits = gateway.ask("GET", "/x")
        assert (waits.status_code, waits.json()["code"], waits.headers["Retry-After"]) == (429, "Busy", "3")
        assert gateway.ask("GET", "/x", bearer(ALICE)).status_code == 200


def test_an_address_of_ipv4_is_its_own_also_where_ipv6_is_listened_on():
    counted = Failures(lambda: 0.0)
    assert [counted.too_many("::ffff:10.0.0.7") > 0 for _ in range(31)] == [False] * 30 + [True]
    assert counted.too_many("10.0.0.7") > 0
    assert counted.too_many("::ffff:10.0.0.8") == 0


class Clocked:
    """A store of tokens and a clock that a test moves; `reads` counts the looks into the store."""

    def __init__(self) -> None:
        self.now_s, self.reads, self.tokens = 0.0, 0, (ALICE,)
        self.fails: CoordinationError | None = None
        self.cache = TokenCache(self.read, lambda: self.now_s)

    def read(self):
        self.reads += 1
        if self.fails is not None:
            raise self.fails
        return self.tokens

    def access(self) -> Access:
        authentication = Authentication(self.cache, lambda: NOW_MS, needs_token=True, is_loopback=True)
        return Access(authentication, Failures(lambda: self.now_s), lambda: NOW_MS)


@pytest.fixture
def clocked():
    store = Clocked()
    with served(store.access()) as gateway:
        store.gateway = gateway
        store.ask = lambda token: gateway.ask("GET", "/x", bearer(token)).status_code
        yield store


def test_requests_cost_no_look_into_the_database(clocked):
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(clocked.ask, [ALICE] * 40)) == {200}
    assert clocked.reads == 1


def test_a_revoked_token_is_refused_within_ten_seconds(clocked):
    assert clocked.ask(ALICE) == 200
    clocked.tokens = ()
    clocked.now_s = 4.9
    assert (clocked.ask(ALICE), clocked.reads) == (200, 1)
    clocked.now_s = 10.0
    assert (clocked.ask(ALICE), clocked.reads) == (401, 2)


def test_events_and_records_that_are_sent_end_with_their_token(clocked):
    """The end of the answer is missing, so that nobody takes it for a whole one."""
    head = "\r\n".join(f"{name}: {value}" for name, value in bearer(ALICE).items())
    with clocked.gateway.connection() as connection:
        connection.sendall(f"GET /events HTTP/1.1\r\nHost: localhost\r\n{head}\r\n\r\n".encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        clocked.now_s = 4.9  # from 5 s on the tokens are read once more, maybe before the revocation
        assert connection.recv(65_536)
        clocked.tokens, clocked.now_s = (), 10.0
        told, sent = b"", clocked.gateway.seen.pieces
        while clocked.gateway.seen.pieces < sent + 100 and (part := connection.recv(65_536)):
            told += part
    assert clocked.gateway.seen.pieces <= sent + 2 and not told.endswith(b"\r\n0\r\n\r\n")


def test_it_is_read_once_more_while_the_old_one_counts(clocked):
    assert clocked.ask(ALICE) == 200
    clocked.now_s = 5.0
    assert clocked.ask(ALICE) == 200  # it may have been refused by what is read meanwhile
    deadline = time.monotonic() + 30
    while clocked.reads < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert clocked.reads == 2


def test_a_new_token_counts_after_a_second_and_unknown_ones_cause_a_look_a_second(clocked):
    assert clocked.ask(ALICE) == 200
    clocked.tokens = (ALICE, SHOP)
    assert [clocked.ask(SHOP) for _ in range(5)] == [401] * 5
    assert clocked.reads == 1
    clocked.now_s = 1.0
    assert (clocked.ask(SHOP), clocked.reads) == (200, 2)


def test_a_database_that_does_not_answer_refuses_all_once_what_was_read_is_too_old(clocked):
    assert clocked.ask(ALICE) == 200
    clocked.fails = CoordinationError("the lease database cannot be used: it is gone")
    clocked.now_s = 9.9
    assert clocked.ask(ALICE) == 200
    clocked.now_s = 20.0
    assert clocked.ask(ALICE) == 503
    clocked.fails = None
    assert clocked.ask(ALICE) == 200


def test_replays_are_authenticated_each_time(clocked):
    """The same request again counts for as long as its token does: what it does once is the application's promise."""
    assert [clocked.ask(ALICE) for _ in range(3)] == [200] * 3
    clocked.tokens, clocked.now_s = (), 10.0
    assert clocked.ask(ALICE) == 401


def test_roles_for_the_whole_warehouse_need_a_grant_for_all_streams():
    from lithify.gateway.access.callers import Caller

    assert Caller("a", ALICE.grants).may(Role.ADMIN, ALL)
    assert not Caller("b", a_token("b", "admin:shop").grants).may(Role.ADMIN)
