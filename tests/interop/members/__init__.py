"""Programs that are members of a group, one for each client: `BOOTSTRAP TOPIC GROUP STRATEGY INSTANCE`.

They print what they are given and what they read, commit by themselves all 100 ms, and leave at SIGTERM. An empty
instance makes a dynamic member; the strategy `consumer` one of the protocol of that name (KIP-848).
"""

import sys


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()
