"""`analyze`: statistics about the topics of a history, as tables and as one HTML page with plots."""
