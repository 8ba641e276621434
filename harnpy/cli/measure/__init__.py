"""Measuring programs while they run: where their time goes, and which parts of them ran at all.

`harnpy profile` records calls and lines through Python's tracing, which sees Harn functions as what they
are; `harnpy test --coverage` counts with probes that it puts into the tree of a program. Reports are made
of plain data, for the terminal, as HTML and for other programs.
"""
