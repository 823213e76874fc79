"""This broker as a group coordinator: consumer groups whose partition of `__consumer_offsets` it leads."""
