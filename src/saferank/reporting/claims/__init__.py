"""The claims of the paper as data, and the verdict of the results on each."""
