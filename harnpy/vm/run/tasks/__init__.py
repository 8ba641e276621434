"""Tasks on one thread: the scheduler, what programs do with tasks, channels, and waiting for asyncio."""
