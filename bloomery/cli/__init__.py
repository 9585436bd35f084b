"""The operator's side: HTTP with a service, and ``template/``, which needs files alone."""
