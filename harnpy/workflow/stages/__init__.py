"""Stages: what each kind of node does when its turn comes. Spec: 08 §7.3–7.7."""
