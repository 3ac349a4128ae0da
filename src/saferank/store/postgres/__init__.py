"""The store of any number of servers: a PostgreSQL database. It imports the contract and what is beside it."""
