"""Builtins about providers and models: what is configured, what a name means, what a model can do."""
