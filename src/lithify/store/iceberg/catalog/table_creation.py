"""Creating the table of a topic in a catalog, in one commit with its first version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyiceberg.catalog import Catalog
from pyiceberg.table import CreateTableTransaction

from lithify.errors import WarehouseError
from lithify.model.names import TopicName
from lithify.model.segment import Segment
from lithify.model.topic.state import TopicState
from lithify.store.iceberg import layout
from lithify.store.iceberg.catalog.embedded import CatalogSource
from lithify.store.iceberg.io.checksums import ref_checksum, sealing
from lithify.store.iceberg.io.folders import create_folder, stored_files
from lithify.store.iceberg.manifests.adapter import first_snapshot
from lithify.store.iceberg.state import topic_codec
from lithify.store.iceberg.state.lineage import rebuilt
from lithify.store.iceberg.state.topic_codec import located
from lithify.store.iceberg.table_columns import PARTITION_SPEC, SORT_ORDER, TABLE_PROPERTIES, schema_of


def create_table(
    source: CatalogSource, name: TopicName, properties: Mapping[str, str], new_id: Callable[[], str]
) -> None:
    """Creates the table of a topic, in a new folder. Raises what the catalog raises."""
    _make_namespace(source.created(), name.stream)
    _make(_staged(source, name, properties, new_id()), "create")


def recreate_table(
    source: CatalogSource, state: TopicState, segments: Sequence[Segment], replaces: Sequence[str]
) -> None:
    """Creates it anew in the folder of `state`, with its logs and segments. Raises what the catalog raises."""
    name, catalog = state.name, source.created()
    _make_namespace(catalog, name.stream)
    creation = catalog.create_table_transaction(
        layout.identifier(name),
        schema_of(state.settings),
        location=state.location,
        partition_spec=PARTITION_SPEC,
        sort_order=SORT_ORDER,
        properties={**TABLE_PROPERTIES, **rebuilt(state, segments, replaces)},
    )
    _make(creation, "repair", tuple(segments))


def _staged(
    source: CatalogSource, name: TopicName, properties: Mapping[str, str], new_id: str
) -> CreateTableTransaction:
    """The creation of the table, begun."""
    stage = partial(
        source.created().create_table_transaction,
        layout.identifier(name),
        schema_of(topic_codec.settings_in(properties)),
        partition_spec=PARTITION_SPEC,
        sort_order=SORT_ORDER,
        properties={**TABLE_PROPERTIES, **properties},
    )
    root = source.root
    if root is None:  # the catalog gives the location, and to a recreated table the same one
        wanted = layout.own_location(stage().table_metadata.location, new_id)
    else:
        wanted = layout.new_location(root, name, new_id)
    layout.check_lasting(wanted, name, source.where)
    staged = stage(location=wanted)
    given = staged.table_metadata.location
    if given != wanted and next(stored_files(given, source.io_properties), None) is not None:
        raise WarehouseError(
            f"{name}: {source.where} would create it in {given}, which already has files",
            hint="move them away, or configure the catalog to accept the requested location; nothing was changed",
        )
    create_folder(given)
    return staged


def _make(creation: CreateTableTransaction, run_id: str, segments: tuple[Segment, ...] = ()) -> None:
    """Ends the creation of a table. Every version is a snapshot on main, the first one as well."""
    creation.set_properties(located({}, creation.table_metadata.location))
    table, snapshot = first_snapshot(creation, run_id, segments)
    creation.set_properties(sealing(table, table.metadata.properties, {layout.MAIN_BRANCH: ref_checksum(snapshot)}))
    creation.commit_transaction()


def _make_namespace(catalog: Catalog, stream: str) -> None:
    try:
        catalog.create_namespace_if_not_exists((stream,))
    except Exception:
        if not catalog.namespace_exists((stream,)):  # else another process made it at the same time
            raise
