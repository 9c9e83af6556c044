"""Lakes and topics as notebooks show them; `repr` reads nothing, HTML the metadata of what is shown."""

from __future__ import annotations

from lithify.errors import LithifyError
from lithify.errors.redaction import redacted
from lithify.model.names import TopicName
from lithify.model.settings.units import plural
from lithify.ports.store import Warehouse
from lithify.service.look.status import topic_info


def lake_text(warehouse: Warehouse) -> str:
    """`<Lake at /srv/lake>`."""
    return f"<Lake at {redacted(warehouse.store.where)}>"


def topic_text(warehouse: Warehouse, name: TopicName) -> str:
    """`<Topic orders in /srv/lake>`."""
    return f"<Topic {name} in {redacted(warehouse.store.where)}>"


def topic_html(warehouse: Warehouse, name: TopicName) -> str:
    """What `lithify topic info` prints; if the topic cannot be read, why."""
    try:
        return topic_info(warehouse, warehouse.store.load(name))._repr_html_()
    except LithifyError as error:
        return _unread(topic_text(warehouse, name), error)


def lake_html(warehouse: Warehouse) -> str:
    """Its topics by name, by one request to the catalog. If it cannot be read, why."""
    from lithify.reports.page import Page, Table, result
    from lithify.reports.page.html import page_html

    try:
        names = sorted(map(str, warehouse.store.topics()))
    except LithifyError as error:
        return _unread(lake_text(warehouse), error)
    table = Table(("TOPIC",), names, lambda name: (name,), left=("TOPIC",))
    return page_html(Page(f"lake at {warehouse.store.where}", table=table, lines=[result(plural(len(names), "topic"))]))


def _unread(what: str, error: LithifyError) -> str:
    from lithify.reports.page.html import text_html

    return f"<p>{text_html(what)}: {text_html(str(error))}</p>"
