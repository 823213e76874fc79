"""What goes wrong in a simulated cluster, and how much of it at a time."""
