"""Making events: what a caller writes them with, and what is checked before they are appended. Spec: 10 §C3.

`payload_types` says what each type of event holds, `drafts` and `messages` make them, `ambient` is what the
code around an append adds to it, `checks` and `references` stand before the log.
"""
