"""Maintenance of a history: merge many small files into few large ones, and delete files that nobody needs.

Compaction rewrites the records of adjacent ranges into one file per day, and replaces those ranges by a single range in
one commit; the old files stay for readers that have listed them. Vacuum deletes the old files later, and also files
left behind by crashed writers. Both check the history before and after, and refuse to make any other change.
"""
