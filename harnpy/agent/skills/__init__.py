"""Skills: instructions that a model is given when they are of use. Spec: 07 §13.

A skill is a plain dict, a registry a plain dict of skills; what was found in files keeps its body aside
until somebody asks for it. Nothing here knows of the language.
"""
