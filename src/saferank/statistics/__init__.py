"""Compiled maths without policies: the KL index, duels, decision rules, leader counts."""
