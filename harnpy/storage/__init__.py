"""Durable append-only streams. The room knows no sessions, no models, no language, and imports none of them.

`contract` defines what every backend promises; each backend is one module.
"""
