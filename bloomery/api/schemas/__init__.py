"""JSON schemas of request bodies, made from the field tables of ``model``."""
