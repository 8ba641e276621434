"""Workflows: graphs of stages, each a task for a model, a program or a worker. Spec: 08 §5–7.

May use `agent`, `session`, `llm`; knows nothing of the language.
"""
