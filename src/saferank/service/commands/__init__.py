"""What callers and operators ask to be done: rank, feedback, switches, rollback. Each writes events.

May import ``protocol`` and what is below it; knows no HTTP.
"""
