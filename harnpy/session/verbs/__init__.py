"""What can be done to a live session: functions over `Residents`, one module a group. Spec: 08 §1."""
