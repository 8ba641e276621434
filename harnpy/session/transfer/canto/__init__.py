"""Canto's directories: a log a session, and one file that says which was forked from which. Spec: 10 §C17.

What Canto has no place for stands in ``metadata.harn`` of a line, which it keeps and ignores.
"""
