"""The client of `harnpy serve`: its types, and what speaks with it. Spec: 11 §3."""
