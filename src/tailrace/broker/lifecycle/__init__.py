"""The lifecycle of a broker: identity, joining a cluster, registration, periodic work, controlled shutdown."""
