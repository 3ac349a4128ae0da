"""Simulated users against policies: the compiled loop, repetitions, results."""
