"""How all contexts of a tenant stand: read once from what was published, and summed up for the first screen."""
