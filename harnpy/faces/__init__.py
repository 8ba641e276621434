"""Faces: modules that let programs written for Canto, Agently or Cognesy read as they did.

A face has that system's names and shapes, never a rule, and nothing of it stands on harnpy's own classes.
Nothing imports this room. Spec: 10 §B2, §C1.1.
"""
