"""Reading values from outside: leniently (a wrong type reads as absent) or strictly (it is an error).

Imports only `faults`, `world` and `text`.
"""
