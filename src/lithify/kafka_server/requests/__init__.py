"""What is answered to each kind of request: a module for each subject, and the table of all.

frame ─► dispatch.py ─► table.py ─► a handler: (context, dict) ─► dict ─► frame
"""
