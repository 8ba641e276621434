"""Execution: a graph is carried out node by node, and every step leaves a record. Spec: 08 §7."""
