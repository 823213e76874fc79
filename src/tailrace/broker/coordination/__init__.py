"""What all coordinators share: where state is kept, and how requests, time and leadership reach the machine."""
