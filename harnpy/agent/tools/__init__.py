"""The tools of agents: what they are, what a model is told of them, how it finds them. Spec: 07 §4–5."""
