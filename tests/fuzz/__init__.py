"""Frames from a seed against a live broker: most of them valid ones that were damaged on purpose.

`requests` makes valid ones for every API and version of the registry, `batches` and `mutations` damage them, `plan`
mixes them into one sequence per seed, `guard` keeps out what would fill the disk, `senders` push them through many
connections, `target` is the broker and what can be measured about it, `control` a client that must not notice anything.
"""
