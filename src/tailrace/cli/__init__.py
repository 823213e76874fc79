"""The command line `tailrace`.

Data goes to standard output, everything else to standard error. Exit codes: 0 success; 1 failure, explained in a
sentence on standard error; 2 wrong usage: an unknown command or option, or an invalid value. Modules here are imported
only when their command runs, and the Kafka client and rich only where they are used, because `tailrace serve` must
start fast and use little memory.
"""
