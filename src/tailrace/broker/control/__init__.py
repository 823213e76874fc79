"""The controller and the calls it serves, and what partition leaders report to it."""
