"""The gateway: what lithify does, over HTTP, in a process that also is a cleaner and keeps Spark warm.

    the command line with --gateway               a browser, curl
        client/ ──────────────┐                       │
                              ▼                       ▼
    operations/   the table of what can be asked: path, role, method of the Python API, report
                              │
    server/       routes of that table, jobs, events, problems        access/   who may do what
                              │
                  api.Lake, daemons.cleaner, metrics

The server and the client are made of one table, so that neither can lack what the other has.
"""
