"""What the commands share: console, progress, tables, errors, common options."""
