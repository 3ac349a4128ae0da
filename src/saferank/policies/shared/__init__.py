"""What several policies use: bubbles, partitions, derivations, settings, and how evidence grows.

May import what the policies may: statistics, safety, the verbs and the registry.
"""
