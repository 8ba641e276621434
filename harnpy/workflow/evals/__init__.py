"""Eval packs: cases that say how runs should have gone, and whether they did. Spec: 08 §8.7."""
