"""Ways to use the library without writing Python: the command, the explorer in a browser, the HTTP service."""
