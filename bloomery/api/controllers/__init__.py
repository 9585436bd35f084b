"""One controller per path; each method calls one operation."""
