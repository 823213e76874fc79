"""The ways in and out. A door translates its protocol to what the broker offers, and keeps nothing worth keeping."""
