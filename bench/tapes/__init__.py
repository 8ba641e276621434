"""What `bench/time_machine.py` needs: the agent's model (a service on 127.0.0.1), and one file a recorder
that runs the agent in it.
"""
