"""Records as Arrow columns and Parquet segments: what a store and a Spark task both need.

Knows files and columns, not topics, commits or Spark. The rules it applies are those of
`compaction`; the oracle there specifies the result.
"""
