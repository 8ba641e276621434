"""What can be done to a live session, one group of verbs a module. Spec: 08 §1."""
