"""Workers whose job is a node or a whole graph: what `spawn_agent` starts. Spec: 07 §11.2, 08 §13.1."""
