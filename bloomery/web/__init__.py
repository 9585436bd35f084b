"""The pages of the service: static files, which ask the REST APIs for all that they show."""
