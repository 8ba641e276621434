"""The loop: ask the model, act on its reply, decide whether to continue. Spec: 07 §6."""
