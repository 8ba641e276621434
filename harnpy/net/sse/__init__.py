"""Server-sent events as a client has them, over connections that may break. Spec: 04 §21.5."""
