"""Commands that take care of a store: backup, restore and forget."""
