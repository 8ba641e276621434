"""Skills: instructions that a model receives when they apply. Spec: 07 §13.

A skill is a plain dict, a registry a plain dict of skills. A skill found in a file leaves its body there
until somebody asks for it. Nothing here knows the language.
"""
