"""harnpy's stores behind the interfaces of other frameworks, one module each. Spec: 10 §C20.

Each needs its extra: importing the module without it raises an ImportError that names it.
"""
