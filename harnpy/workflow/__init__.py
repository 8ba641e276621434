"""Workflows: stages that work on a task with a model, and the artifacts that they pass on. Spec: 08 §5–7.

May use `agent`, `session`, `llm`; knows nothing of the language.
"""
