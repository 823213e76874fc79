"""Brokers of this machine: start them as processes, watch them, stop them.

What `tailrace cluster up` and `tailrace demo` run, and what `tailrace.testing` builds on. A broker is the program that
people run, `tailrace serve`, in a process of its own: nothing here imports the broker. It has the defaults of
`tailrace serve` and the settings that the caller gives, no others.

`broker` is one process, `cluster` several of them. `places` gives each its data directory and its ports, which
`held_ports` reserves; `process_log` collects what a process writes to standard error. `cluster_view` is the cluster as
one broker describes it, over `blocking_request`; `listening_pids` finds the process behind an address.
"""
