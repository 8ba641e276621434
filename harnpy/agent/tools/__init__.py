"""The tools of agents: what they are, how a model is told about them, how it finds them. Spec: 07 §4–5."""
