"""Metrics in the format of Prometheus: which there are, what changes them, and how they are served.

    events, batches, notes ─► changes of counters ─┐
    what a look has found  ─► samples of gauges   ─┴─► registry ─► text ─► GET /metrics

Only `registry.py` imports prometheus-client, and only `endpoint.py` listens on a port. A scrape reads memory: neither
catalog nor database (`last_look_age_seconds` says how old that is).
"""
