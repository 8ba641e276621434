"""Agents: the loop that asks a model, acts on the answer and knows when to stop.

The room stands on sessions and models and knows no language: functions are Python callables.
Spec: 07 §6–9.
"""
