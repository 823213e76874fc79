"""The clients of a simulated cluster; each records what it was told, so that it can be checked."""
