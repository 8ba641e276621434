"""Topics: named streams of events that anyone may add to and follow. Spec: 08 §15.

The room stands on `harnpy.storage` and knows no sessions, no models, no language.
"""
