"""The operator's commands: an HTTP client, and ``template/``, which needs files only."""
