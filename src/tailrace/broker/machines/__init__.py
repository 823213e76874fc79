"""Running a pure state machine on a partition: append and replay its records, answer when they are committed."""
