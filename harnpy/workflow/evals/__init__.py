"""Eval packs: cases that describe how runs should go, and how they are judged. Spec: 08 §8.7."""
