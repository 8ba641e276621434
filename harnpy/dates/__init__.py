"""Dates, times of day, zones and lengths of time, as pure functions. Spec: 04 §14.

An *instant* is a point in time as whole microseconds since 1970, UTC; a length of time is whole milliseconds.
Where an instant is shown in a zone, it is an aware `datetime`. Nothing here knows what time it is.
"""
