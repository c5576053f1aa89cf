"""The ``fewest`` command: results on stdout, everything else on stderr, one exit code per kind of ending."""

from fewest.apps.cli._main import main

__all__ = ["main"]
