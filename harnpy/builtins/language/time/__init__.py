"""Time: dates, durations, clocks, timers."""
