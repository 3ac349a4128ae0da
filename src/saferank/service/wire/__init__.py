"""What goes over the wire: calls, answers and problems, as strict models. Imports nothing else of the service."""
