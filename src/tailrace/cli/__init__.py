"""The command line: commands, nothing else.

Data goes to standard output, everything else to standard error. Exit codes: 0 it worked, 1 it did not (one clear
sentence on standard error says why), 2 the command was not understood. Modules here are imported only when their
command runs, and the Kafka client and rich only where they are used: `tailrace serve` must start fast and stay small.
"""
