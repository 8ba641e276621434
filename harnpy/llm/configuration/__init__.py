"""Which providers and models there are, and what each can do and costs. Spec: 07 §1.12, §1.14–1.15."""
