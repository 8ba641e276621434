"""The one door to the outside: time, ids, chance, environment, files, processes, streams, HTTP and people.

A module each: what a program may ask of the world (a protocol), and the real thing beside it. `World` gathers
them. Recording, replaying, sandboxing and mocking replace parts of it. Every other room reaches the outside
through a `World`; this room imports nothing but `harnpy.faults`.
"""

from harnpy.world.world import World as World
