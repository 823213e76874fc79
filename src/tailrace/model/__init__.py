"""Shared basics: ids, faults, limits, settings. Imports no other package of Tailrace."""
