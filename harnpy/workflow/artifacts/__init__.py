"""Artifacts: what stages make, and which of them other stages see. Spec: 08 §5."""
