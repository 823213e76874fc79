"""The clients of a simulated cluster: each remembers what it was promised."""
