"""A client of a Pulsar cluster: its binary protocol over sockets, and its admin interface over HTTP.

ClientConfig ──► Cluster       partitions, last ids, exclusive subscriptions
             ├─► TopicEnd      the last id of one partition, for who asks again and again
             ├─► TopicReader   raw entries of one partition, in tasks on any machine
             └─► Admin         what brokers tell over HTTP
"""

from lithify.pulsar.client.admin import Admin
from lithify.pulsar.client.cluster import Cluster
from lithify.pulsar.client.config import OUTAGE_S, ClientConfig, conf_of
from lithify.pulsar.client.end import TopicEnd
from lithify.pulsar.client.subscription import Subscription
from lithify.pulsar.client.topic_reader import TopicReader

__all__ = ["OUTAGE_S", "Admin", "ClientConfig", "Cluster", "Subscription", "TopicEnd", "TopicReader", "conf_of"]
