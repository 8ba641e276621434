"""Stages: what each kind of node does when it runs. Spec: 08 §7.3–7.7."""
