"""The shell of share groups: the share coordinator and the way to it."""
