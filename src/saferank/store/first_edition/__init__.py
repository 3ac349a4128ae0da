"""Stores of the first edition (schemas 1 and 2 of its SQLite file): read and converted, never written."""
