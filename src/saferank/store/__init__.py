"""The durable log of the live service: one SQLite file, one writer."""
