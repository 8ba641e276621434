"""Asking people: questions, approvals, escalations, and what their responses amount to. Spec: 07 §14.6."""
