"""Structured output: schemas, finding JSON in a reply, judging it, asking again. Spec: 07 §1.6, §1.9."""
