"""The services of `tailrace.v1`, one file each; `protos/tailrace_v1` says what they promise."""
