"""What several policies use: blocks, bubbles, partitions, plans, the account, and how states grow.

May import what the policies may: statistics, safety, the verbs and the registry.
"""
