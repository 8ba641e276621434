"""Habits that a program would be better without: rules with a reason, many with a fix. Spec: 03 §15."""
