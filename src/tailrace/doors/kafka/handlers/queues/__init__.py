"""Handlers of share groups: taking records and acknowledging them."""
