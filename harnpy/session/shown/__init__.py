"""How a model is shown a session: the order of messages, tool repair, pins, rewinds. Spec: 10 §A1.8, §C5."""
