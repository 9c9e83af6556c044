"""The gateway: what lithify does, over HTTP, in a process that also is a cleaner and keeps Spark warm.

a browser, curl
      │
server/       routes of the table, jobs, events, problems        access/   who may do what
      │
operations/   the table of what can be requested: path, role, method of the Python API, report
      │
api.Lake, daemons.cleaner
"""
