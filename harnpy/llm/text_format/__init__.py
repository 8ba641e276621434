"""Tool calls as text: splitting a reply into blocks and calls. Spec: 07 §6.6."""
