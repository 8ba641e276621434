"""Artifacts: what stages make, and which of them others get to see. Spec: 08 §5."""
