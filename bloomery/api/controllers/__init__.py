"""One controller per path; each only says which operation it stands for."""
