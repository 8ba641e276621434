"""Resolved trees to Python closures.

Each function of a program becomes one Python function: its inner nodes are fused into it, so that
nothing is dispatched and nothing is called that the program does not call. `writer` keeps the text and
what each line stands for; `emitter` is one function being written; the other modules say, one family
of nodes each, how a node reads in Python. May use `syntax` and the rest of `vm`.
"""
