"""Methods of values: one module a receiver, loaded when a program first calls one of its methods.

The modules hold nothing but `@method` functions and their helpers. A receiver without a method of the
name has none: calling it gives nil (02 §14.4). Spec: 04 §4–9.
"""
