"""Work in the background of the program: workers, their snapshots and what they carry over. Spec: 07 §11."""
