"""The settings of the topics of a directory, and whether it is known that they are compacted (decision 48).

metadata log of the cluster ─► its policy decides, or that of the broker if it is stated there
no policy is stated         ─► one has to be given, and the broker's cleaner has to have been in the topic before
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lithify.errors import InvalidInputError, RefusedError
from lithify.kafka_log.cleaning.clean_settings import METADATA_DIR, POLICY, CleanSettings, clean_settings
from lithify.kafka_log.cleaning.cluster_configs import ClusterConfigs
from lithify.kafka_log.cleaning.metadata_log import METADATA_FOLDER, cluster_configs
from lithify.kafka_log.directories.checkpoints import CLEANER, META_PROPERTIES, properties_in
from lithify.kafka_log.directories.folders import LogFolder, noted_in


def topic_settings(
    root: Path, given: Mapping[str, str], folders: Sequence[LogFolder], *, was_shut_down: bool
) -> Mapping[str, CleanSettings]:
    """By topic. Raises `RefusedError` for one that is not known to be compacted, `DamagedError` or `OSError`."""
    cluster, own = _cluster(root, given, was_shut_down=was_shut_down), _properties(root)
    node = own.get("node.id", own.get("broker.id"))
    if cluster is not None and node is None:
        raise RefusedError(
            f"{root / META_PROPERTIES} does not say which broker has the directory, and each may have its own settings",
            hint="copy that file of the directory too",
        )
    found = {}
    for folder in folders:
        stated = {} if cluster is None or node is None else _stated(cluster, folder, node)
        found[folder.topic] = clean_settings(folder.topic, given, stated)
    for topic, settings in found.items():
        if not settings.is_stated and all(one.first_dirty is None for one in folders if one.topic == topic):
            raise RefusedError(
                f"{topic}: no metadata log states its {POLICY}, and by {root / CLEANER} no cleaner was in it yet",
                hint=f"name the directory with the broker's {METADATA_FOLDER} by {METADATA_DIR}, or import the "
                "directory into the lake",
            )
    return found


def _cluster(root: Path, given: Mapping[str, str], *, was_shut_down: bool) -> ClusterConfigs | None:
    """What the metadata log says; None if there is none in the directory, and no other is given."""
    other = given.get(METADATA_DIR)
    place = root if other is None else Path(other)
    if not (place / METADATA_FOLDER).is_dir():
        if other is None:
            return None
        raise InvalidInputError(
            f"{place} has no {METADATA_FOLDER}", hint=f"name what {METADATA_DIR} of the broker names"
        )
    if place.resolve() != root.resolve() and (root / METADATA_FOLDER).is_dir():
        raise RefusedError(
            f"{root} has a {METADATA_FOLDER}, so no other says how its topics are set up",
            hint=f"leave out {METADATA_DIR}",
        )
    clusters = [_properties(path).get("cluster.id") for path in (root, place)]
    if None not in clusters and len({*clusters}) > 1:
        raise RefusedError(
            f"{place} is of the cluster {clusters[1]}, and {root} of {clusters[0]}",
            hint="name a directory of the same cluster",
        )
    return cluster_configs(place / METADATA_FOLDER, may_be_torn=not was_shut_down)


def _stated(cluster: ClusterConfigs, folder: LogFolder, node: str) -> Mapping[str, str]:
    topic_id = cluster.topics.get(folder.topic)
    if topic_id is None or folder.topic_id not in (None, topic_id):
        raise RefusedError(
            f"{folder.path}: it is of no topic that the cluster has, by its metadata log",
            hint="leave it to the broker, which deletes or sets aside such a folder when it starts",
        )
    return cluster.of(folder.topic, node)


def _properties(root: Path) -> Mapping[str, str]:
    return noted_in(root / META_PROPERTIES, properties_in) or {}
