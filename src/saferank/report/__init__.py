"""What is made of results: averages over instances, figures."""
