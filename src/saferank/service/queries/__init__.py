"""What is asked and changes nothing: overviews, stories of pages, versions, exports, counters.

May import ``protocol`` and what is below it; knows no HTTP.
"""
