"""The rules for what agents may do: policies, approval, permissions, hooks, and their gate. Spec: 07 §8."""
