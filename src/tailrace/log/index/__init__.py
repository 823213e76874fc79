"""Lookups from an offset or a timestamp to a position in a segment."""
