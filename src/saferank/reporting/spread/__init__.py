"""What means hide: single queries, single runs, single pages."""
