"""Being told of a session's events as they come: watches and observers. Spec: 10 §A1.12, §C10."""
