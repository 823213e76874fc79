"""Raft between brokers: fetch sessions, votes, deadlines and elections of all partitions hosted here."""
