"""How the API reaches conductors: one typed contract, and the transports that carry it."""
