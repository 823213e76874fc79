"""One broker under load whose power is cut again and again.

| module | what |
|---|---|
| `scenario` | the run: start, load, crash, restart, read everything back |
| `producer`, `administrator` | the clients, which record what the broker acknowledged |
| `background_faults` | full disks and clock jumps while the broker runs |
| `read_back` | reads a partition and compares it with what was acknowledged |
"""
