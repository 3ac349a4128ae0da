"""The durable log of the live service: a contract, and two stores that keep it: SQLite and PostgreSQL."""
