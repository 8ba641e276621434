"""Tool calls as text: a reply taken apart into blocks and calls. Spec: 07 §6.6."""
