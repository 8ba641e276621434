"""Friction: recurring obstacles in a team's work, and the context packs that would remove them. Spec: 08
§8.8."""
