"""What a server does between its calls: write in groups, keep its lease, close and fold, follow what others publish.

May import ``knowledge``, ``wire`` and the contract of the store; knows no HTTP. Time, sleeping and the store are
arguments, so a whole server runs under a simulated clock.
"""
