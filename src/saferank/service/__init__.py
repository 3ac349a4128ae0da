"""The live service: HTTP in front of the same learner that the library runs."""
