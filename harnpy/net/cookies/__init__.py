"""Cookies: read from requests, written for answers, signed, and kept as a browser keeps them (RFC 6265).

Spec: 04 §16.4.
"""
