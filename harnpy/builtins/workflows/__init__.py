"""Workflows: graphs, their runs and what runs leave. Spec: 08 §5–8."""
