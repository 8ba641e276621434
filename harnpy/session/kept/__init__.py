"""What sessions that a store keeps have beside those in memory. Spec: 10 §C4, §C9."""
