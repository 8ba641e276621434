"""Which commands may run: policies on `process.exec`, with their scans, hooks and decisions. Spec: 02 §28."""
