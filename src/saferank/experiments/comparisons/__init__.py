"""Policies side by side: one pair, all pairs with adjusted tests, tails of single runs, every query as a point."""
