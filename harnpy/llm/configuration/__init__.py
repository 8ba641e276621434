"""The known providers and models, what each can do, and what it costs. Spec: 07 §1.12, §1.14–1.15."""
