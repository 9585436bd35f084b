"""Jobs that run from time to time, one file per job; ``table`` lists them all."""
