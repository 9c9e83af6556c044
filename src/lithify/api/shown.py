"""Lakes and topics as notebooks show them; `repr` reads nothing, HTML the metadata of what is shown."""

from __future__ import annotations

from lithify.errors import LithifyError
from lithify.model.names import TopicName
from lithify.model.settings.units import plural
from lithify.ports.store import Warehouse
from lithify.redaction import redacted
from lithify.reports.notebook.html import html_of, page_html, text_html
from lithify.reports.notebook.pages import Page
from lithify.reports.tables.table import Table
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
        return html_of(topic_info(warehouse, warehouse.store.load(name)))
    except LithifyError as error:
        return _unread(topic_text(warehouse, name), error)


def lake_html(warehouse: Warehouse) -> str:
    """Its topics by name: one look at the catalog. If it cannot be read, why."""
    try:
        names = sorted(map(str, warehouse.store.topics()))
    except LithifyError as error:
        return _unread(lake_text(warehouse), error)
    table = Table(("TOPIC",), names, lambda name: (name,), left=("TOPIC",))
    return page_html(Page(f"lake at {warehouse.store.where}", table, [plural(len(names), "topic")]))


def _unread(what: str, error: LithifyError) -> str:
    return f"<p>{text_html(what)}: {text_html(str(error))}</p>"
