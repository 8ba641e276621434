"""A turn of an agent in a session's log: its calls and their results, and how it ends. Spec: 10 §C16."""
