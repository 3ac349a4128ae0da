"""Backups: one file with everything that a store holds, its keys included. A file fits both kinds of stores."""
