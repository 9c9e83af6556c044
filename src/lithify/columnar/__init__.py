"""Records as Arrow columns and Parquet segments, used by stores and by Spark tasks.

Knows files and columns, not commits or Spark. It applies the rules of `compaction`, whose oracle specifies
the result.
"""
