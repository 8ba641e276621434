"""Tools: registries, what a model is told of them, surfaces, synthesized tools. Spec: 07 §4."""
