"""What a run was, read from its log: run logs, trees of them, and episodes to keep. Spec: 10 §A1.16, §C10."""
