"""One look at each construct, in the order in which the specification discovers faults. Spec: 03 §8.1."""
