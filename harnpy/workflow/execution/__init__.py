"""Execution: running a graph node by node, with a record of every step. Spec: 08 §7."""
