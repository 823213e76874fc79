"""Keeping a history in shape: few large files in place of many small ones, and nothing on the disk that nobody needs.

Compaction writes the records of neighbouring ranges once more, into one file a day, and replaces the ranges by one in
a single commit; the old files stay for readers who have listed them. Vacuum removes them later, and what writers that
died have left. Both look before and after: what they would change beyond that is not done at all.
"""
