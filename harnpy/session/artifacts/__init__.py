"""Artifacts: bodies in a store of their own, and their descriptors in logs. Spec: 10 §A1.14, §C10."""
