"""Faults from a seed: servers, network and time are simulated in one thread; a failing run can be replayed."""
