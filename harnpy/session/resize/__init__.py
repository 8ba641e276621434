"""Making a conversation shorter: where to cut, what to put there, which messages stay together.

Spec: 08 §4."""
