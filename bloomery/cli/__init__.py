"""The operator's side: it speaks HTTP with a service, and nothing else."""
