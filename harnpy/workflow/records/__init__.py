"""Run records: what a run of a workflow did, kept in a file, and what can be told from it. Spec: 08 §8."""
