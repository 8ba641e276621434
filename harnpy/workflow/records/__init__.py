"""Run records: what a workflow run did, kept in a file, and what follows from it. Spec: 08 §8."""
