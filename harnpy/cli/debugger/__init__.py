"""The debugger: one engine, and the faces that people and editors see of it.

`engine` watches a program that is walked (`harnpy.vm.walk`) and blocks it where it is to stop. The program
runs in a thread of its own (`program`); a face runs in another one, and what it wants to know of a stopped
program is asked in the program's thread. `breakpoints`, `steps` and `stack` say where to stop and where
everything is, `names` and `evaluate` what a frame sees. `rewinding` is the engine of recorded runs, which
goes back. `terminal` is the face for people, `dap/` the one for editors. Spec: 09 §15.
"""
