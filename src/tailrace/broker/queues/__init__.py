"""The shell of share groups: delivery on the leaders of partitions, the share coordinator, and calls to both."""
