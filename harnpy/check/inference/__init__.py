"""The type of an expression where it stands, as far as it has one. Spec: 03 §5."""
