"""`analyze`: what a history says about its topics, as tables, and as one HTML page with plots."""
