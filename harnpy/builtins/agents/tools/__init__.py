"""Tools: registries, their descriptions for models, surfaces, synthesized tools. Spec: 07 §4."""
