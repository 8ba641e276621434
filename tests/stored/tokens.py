"""What the makers and the readers of a generation both know."""

#: 2026-03-01T09:00:00Z, when generations begin.
BEGIN = 1_772_355_600.0

#: The tokens of bearer sessions: nothing else tells whose they are.
TOKENS = {name: f"hs_{name}-Zk3vT9qLw2XbN7cRy5HdJ8mPs4Ug6Ae1oFi0" for name in ("alive", "expired", "old")}
