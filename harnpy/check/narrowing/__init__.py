"""What a condition or a pattern that was taken says of a variable's type, and what a `match` leaves out.

Functions over trees and types: the `facts` of conditions, the `exits` of blocks, `matching` of arms,
`exhaustiveness`, the `coverage` of an `unknown`. The walk of a program puts the facts into its scopes.
Spec: 03 §6, §10.
"""
