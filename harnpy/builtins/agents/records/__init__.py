"""Run records for programs: making, keeping, judging and comparing them. Spec: 08 §8."""
