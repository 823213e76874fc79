"""Scenarios for the simulator: real brokers, clients that record what was acknowledged, faults, and checks.

`power_cuts` runs one broker whose power is cut again and again. `cluster` runs whole clusters under every fault the
simulator has; `tailrace simulate` is its command line.
"""
