"""What is asked of the service: the two calls, what operators do, what readers see, exports and replay.

May import ``protocol`` and what is below it; knows no HTTP.
"""
