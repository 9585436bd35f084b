"""RPC from API to conductors: one typed contract, and its transports."""
