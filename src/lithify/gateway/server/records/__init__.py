"""Records in and out over HTTP.

POST records     body ─► its bytes, bounded ─► a table ─► `appends`, on a pool of its own ─► offsets
GET records      a page with the place of the next one, or all as they are read ┐
GET table        all as they are found                                          ┴► JSON lines, or an Arrow stream
"""
