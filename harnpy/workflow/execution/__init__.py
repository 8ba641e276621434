"""Execution: running a graph node by node, what each kind of node does, and the record of every step.

Spec: 08 §7.
"""
