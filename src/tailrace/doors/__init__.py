"""Doors: the protocols that clients reach the log by. A door translates, and keeps no state that outlives it."""
