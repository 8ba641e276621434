"""Workflow graphs as values: read, checked, governed and edited; nothing here runs one. Spec: 08 §6."""
