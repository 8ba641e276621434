"""The loop: ask the model, act on its reply, decide whether to go on. Spec: 07 §6."""
