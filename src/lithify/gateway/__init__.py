"""The gateway: what lithify does, over HTTP, in a process that also is a cleaner and keeps Spark warm.

a browser, curl, `lithify --gateway` by client/
      │
listening/    the address, its certificate, how long it waits
      │
access/       who asks, from where, how much; the audit log
      │
server/       routes of the table, jobs, events, problems        page/   what a browser shows
      │
operations/   the table of what can be requested: path, role, method of the Python API, report
      │
api.Lake, daemons.cleaner        standing/   processes of standing jobs
"""
