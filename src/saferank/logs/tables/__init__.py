"""The compiled tables between a reader and the records: batches of pages, counts, distinct rows."""
