"""TOML to values, by `tomllib`, and back, by our own writer. Spec: 04 §11.5."""
