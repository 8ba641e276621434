"""WebSockets as a program has them: what is sent and received, and the open ones. Spec: 04 §21.5."""
