"""Friction: what kept getting in a team's way, and the context packs that would spare it. Spec: 08 §8.8."""
