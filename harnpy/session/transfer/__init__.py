"""Sessions in files: one module a format. Spec: 10 §C17."""
