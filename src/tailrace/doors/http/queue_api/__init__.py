"""The queue API of the HTTP door, for programs written against an HTTP queue with producer and consumer ids."""
