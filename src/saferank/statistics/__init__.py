"""Maths without policies: the KL index, duels, decision rules, leader counts; ``effect/`` compares served pages."""
