"""The shared vocabulary: ids, faults, limits, settings. Imports nothing of ours."""
