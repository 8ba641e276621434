"""Schemas: one spelling of them, checking values against them, and JSON Schema's spelling. Spec: 04 §12.

A schema is a dict in the canonical spelling or in JSON Schema's. A canonical one has ``type`` names as
`type_of` returns them, so that an int is not a float. Nothing here knows the language: what its values are is
asked of a `values.SchemaValues`.
"""
