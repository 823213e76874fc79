"""Running a pure state machine over a partition: append and replay its records, answer when they are committed."""
