"""Work that goes on beside the program: workers, their records and what they carry over. Spec: 07 §11."""
