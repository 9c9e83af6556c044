"""TLS, tokens and rights, as `client.conf` names them; and no token in any error."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

import lithify
import pulsar
from lithify.api.pulsar import LiveTopic
from lithify.errors import BrokerError, LithifyError
from lithify.model.message import MessageId
from lithify.pulsar.client import Admin, ClientConfig, Cluster, TopicReader
from lithify.pulsar.client.broker_refusals import TransientBrokerError
from lithify.pulsar.client.config import OAUTH2
from lithify.pulsar_consumer import PulsarSnapshotConsumer
from support.pulsar.copies import PulsarCopy, namespace_retention, trim
from support.pulsar.issuer import an_issuer
from support.pulsar.jars import pulsar_jars
from support.pulsar.secured import PLUGIN, SecuredPulsar, a_secured_pulsar, certificate, token_of

END = MessageId(1 << 40, 0)


@pytest.fixture(scope="module")
def secured():
    with a_secured_pulsar() as secured:
        yield secured


@pytest.fixture(scope="module")
def topic(secured: SecuredPulsar) -> str:
    """With two messages, that the role `reader` may read."""
    name = secured.server.make_topic()
    secured.server.admin("POST", "namespaces/public/default/permissions/reader", json=["consume"])
    produce(secured, name)
    return name


def produce(secured: SecuredPulsar, topic: str) -> None:
    """Two messages."""
    token = pulsar.AuthenticationToken(token_of("admin"))
    client = pulsar.Client(secured.service_url, token, tls_trust_certs_file_path=secured.tls.trust_certs_file)
    producer = client.create_producer(topic)
    for value in (b"a", b"b"):
        producer.send(value)
    client.close()


def conf_for(secured: SecuredPulsar, role: str) -> ClientConfig:
    conf = {
        "brokerServiceUrl": secured.service_url,
        "webServiceUrl": secured.admin_url,
        "authPlugin": PLUGIN,
        "authParams": f"token:{token_of(role)}",
        "tlsTrustCertsFilePath": secured.tls.trust_certs_file,
        "tlsEnableHostnameVerification": "true",
    }
    return ClientConfig.of(conf=conf)


def oauth2_conf_for(secured: SecuredPulsar, parameters: str) -> ClientConfig:
    conf = {"authPlugin": OAUTH2, "authParams": parameters, "tlsTrustCertsFilePath": secured.tls.trust_certs_file}
    return ClientConfig.of(secured.service_url, secured.admin_url, conf)


def values(config: ClientConfig, topic: str) -> list[bytes]:
    return [entry.data[-1:] for entries in TopicReader(config, topic).read(None, END) for entry in entries]


def test_a_client_with_rights_reads_over_tls(secured, topic):
    assert values(conf_for(secured, "reader"), topic) == [b"a", b"b"]
    assert Cluster(conf_for(secured, "reader")).partitions(topic) == 0


def test_the_admin_interface_answers_a_superuser_over_tls(secured, topic):
    admin = Admin(conf_for(secured, "admin"))
    assert admin.internal_configuration()["metadataStoreUrl"] == secured.server.metadata_url
    assert admin.internal_stats(topic)["numberOfEntries"] == 2


def test_a_consumer_from_the_lake_needs_the_rights_of_a_reader(secured, topic, tmp_path):
    """Also at the admin interface, which it asks what was trimmed."""
    copy = lithify.open(str(tmp_path)).create_topic(topic, like="pulsar", config={"message.ids": "pulsar"})
    with PulsarSnapshotConsumer(copy, conf_for(secured, "reader"), pulsar_topic=topic) as consumer:
        assert [record.value for record in islice(consumer, 2)] == [b"a", b"b"]
        assert consumer.poll(0.1) is None
        assert consumer.caught_up()
    with pytest.raises(BrokerError) as caught:
        PulsarSnapshotConsumer(copy, conf_for(secured, "nobody"), pulsar_topic=topic)
    assert token_of("nobody") not in str(caught.value)


def test_an_ingest_needs_the_rights_of_a_reader(secured, topic, tmp_path, session):
    """Its tasks log in themselves; neither reports nor the lake have the token."""
    lake = lithify.open(str(tmp_path / "lake"))
    (report,) = lake.ingest_pulsar(conf_for(secured, "reader"), [topic], spark=session)
    assert (report.error, report.records) == (None, 2)
    assert [record.value for record in lake.topic(topic).reader(0)] == [b"a", b"b"]
    (report,) = lake.ingest_pulsar(conf_for(secured, "nobody"), [topic], into="other", spark=session)
    assert "Authorization" in str(report.error)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for role in ("reader", "nobody"):
        assert token_of(role) not in str(report.error)
        assert token_of(role).encode() not in written


def test_a_round_needs_the_rights_that_its_guide_names(secured, topic, session, tmp_path):
    """Over TLS, with a token that tasks use as well. A consumer says itself what only superusers are told."""
    file, compacted = tmp_path / "token", {"spark": session, "jars": str(pulsar_jars())}
    config = replace(conf_for(secured, "reader"), token="", token_file=str(file))
    for role in ("nobody", "reader"):
        file.write_text(token_of(role))
        with pytest.raises(LithifyError, match=r"answers 40[13]") as caught:
            LiveTopic(topic, config).compact(**compacted)
        assert token_of(role) not in str(caught.value)
    told = {"retain_null_key": True, "order": "event-time", "replication": (1, 1, 1)}  # which takes tasks
    own = LiveTopic(topic, config).compact(**compacted, **told, metadata_url=secured.server.metadata_url)
    assert [(one.error, one.messages_in, one.messages_out) for one in own.partitions] == [(None, 2, 2)]
    assert all("it is unknown" in note for note in own.notes)
    file.write_text(token_of("admin"))
    (report,) = LiveTopic(topic, config).compact(**compacted).partitions
    assert (report.error, report.changed) == (None, False)


@pytest.mark.usefixtures("topic")  # with the rights of the reader
def test_an_ingest_continues_where_it_may_not_ask_for_a_ttl(secured, tmp_path, session):
    """C52: of a ledger that is gone, though the copy has it; only admins of the tenant may ask."""
    topic = secured.server.make_topic()
    copy = PulsarCopy(lithify.open(str(tmp_path / "lake")), secured.server, session, topic)
    namespace_retention(secured.server, topic, 0)
    produce(secured, topic)
    assert copy.ingest(config=conf_for(secured, "reader")).records == 2
    trim(copy)
    produce(secured, topic)
    assert copy.ingest(config=conf_for(secured, "reader")).records == 2
    with pytest.raises(BrokerError):
        Admin(conf_for(secured, "reader")).message_ttl_s(topic)
    assert Admin(conf_for(secured, "admin")).message_ttl_s(topic) == 0


def test_a_client_logs_in_with_a_token_that_an_issuer_gives_it(secured, topic, tmp_path):
    """By OAuth 2.0's client credentials, as hosted Pulsars want it; the broker refuses what the issuer did not sign."""
    with an_issuer(tmp_path) as issuer:
        config = oauth2_conf_for(secured, issuer.parameters(f"file://{issuer.credentials(tmp_path)}"))
        assert values(config, topic) == [b"a", b"b"]
        assert Admin(config).internal_stats(topic)["numberOfEntries"] == 2
        assert [form["client_id"] for form in issuer.asked] == ["reader"]
        issuer.answer = (200, {"access_token": token_of("reader", b"another key" * 4)})
        with pytest.raises(BrokerError, match="Authentication"):
            values(oauth2_conf_for(secured, issuer.parameters(f"file:{issuer.credentials(tmp_path)}")), topic)


def test_a_token_file_is_read_at_each_use(secured, topic, tmp_path):
    file = tmp_path / "token"
    config = replace(conf_for(secured, "reader"), token="", token_file=str(file))
    file.write_text(token_of("nobody"))
    with pytest.raises(BrokerError, match="Authorization"):
        values(config, topic)
    file.write_text(f"{token_of('reader')}\n")
    assert values(config, topic) == [b"a", b"b"]


def test_certificates_are_optional_where_the_client_says_so(secured, topic, tmp_path):
    other, _ = certificate(tmp_path, "other")
    config = conf_for(secured, "reader")
    assert values(replace(config, tls=replace(config.tls, trust_certs_file="", allow_insecure=True)), topic)
    untrusting = replace(config, tls=replace(config.tls, trust_certs_file=str(other)))
    with pytest.raises(BrokerError, match="not trusted"):
        values(untrusting, topic)
    with pytest.raises(BrokerError, match="no TLS connection"):
        Admin(untrusting).internal_stats(topic)


def test_a_host_name_is_verified_where_the_client_says_so(secured, topic):
    config = conf_for(secured, "reader")
    by_name = replace(config, service_url=config.service_url.replace("127.0.0.1", "localhost"))
    with pytest.raises(BrokerError, match="not trusted"):
        Cluster(by_name).partitions(topic)
    lenient = replace(by_name, tls=replace(by_name.tls, verify_hostname=False))
    assert Cluster(lenient).partitions(topic) == 0


CASES = {
    "no token": (lambda config: replace(config, token=""), "Authentication"),
    "a forged token": (lambda config: replace(config, token=token_of("admin", b"another key" * 4)), "Authentication"),
    "rubbish": (lambda config: replace(config, token="secret-rubbish"), "Authentication"),
    "a role without rights": (lambda config: replace(config, token=token_of("nobody")), "Authorization"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_client_without_rights_is_told_so_at_once_and_without_its_token(secured, topic, case):
    change, said = CASES[case]
    config = change(conf_for(secured, "reader"))
    calls = {
        "the reader": lambda: values(config, topic),
        "partitions": lambda: Cluster(config).partitions(topic),
        "a subscription": lambda: Cluster(config).subscribe(topic, "__compaction", compacted=True),
        "the admin interface": lambda: Admin(config).internal_configuration(),
    }
    for name, call in calls.items():
        with pytest.raises(LithifyError) as caught:
            call()
        assert isinstance(caught.value, BrokerError) and not isinstance(caught.value, TransientBrokerError), name
        assert said in str(caught.value) or "answers 40" in str(caught.value), name
        assert not config.token or config.token not in str(caught.value) + repr(caught.value), name


def test_a_client_without_tls_at_the_port_for_tls_gets_an_error(secured, topic):
    plain = ClientConfig(secured.service_url.replace("pulsar+ssl", "pulsar"), answer_s=3)
    with pytest.raises(BrokerError):
        Cluster(plain).partitions(topic)
    with_tls = ClientConfig(secured.server.service_url.replace("pulsar:", "pulsar+ssl:"), tls=secured.tls, answer_s=3)
    with pytest.raises(BrokerError, match="no TLS connection"):
        Cluster(with_tls).partitions(topic)
