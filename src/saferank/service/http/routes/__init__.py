"""The endpoints: what is asked, what is changed, health, and the two hot calls."""
