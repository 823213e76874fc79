"""Pure parts of a share consumer (KIP-932): sessions with brokers, what they deliver, how that is acknowledged."""
