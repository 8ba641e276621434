"""Workflow graphs as values: reading, checking, restricting and editing them. Nothing here runs one. Spec: 08
§6."""
