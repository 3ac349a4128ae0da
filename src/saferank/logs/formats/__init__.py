"""Readers of log formats, one per file; all of them fill the same batches of pages."""
