"""What all coordinators share: the topic that keeps their state, and requests, timers and leadership changes."""
