"""What connections have in common over which messages come by themselves: waiting for them, and mocks.

Spec: 04 §21.5.
"""
