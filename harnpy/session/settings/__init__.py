"""Settings of sessions, and who inherits them. Spec: 10 §C8.1."""
