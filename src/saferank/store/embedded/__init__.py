"""The store of one server: a SQLite file in a folder. It imports the contract and what is beside it, nothing above."""
