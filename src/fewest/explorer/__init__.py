"""The local explorer: a run folder as pages in a browser, without the model; nothing leaves the machine."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fewest.explorer._app import create_app
    from fewest.explorer._guard import Guard, known_hosts, new_token
    from fewest.explorer._live import Live
    from fewest.explorer._server import Binding, announcer, serve

__all__ = ["Binding", "Guard", "Live", "announcer", "create_app", "known_hosts", "new_token", "serve"]

HOMES = {
    "Binding": "_server", "Guard": "_guard", "Live": "_live", "announcer": "_server", "create_app": "_app",
    "known_hosts": "_guard", "new_token": "_guard", "serve": "_server",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a name when it is asked for: the command line only wants to know where to listen."""
    if name in HOMES:
        return getattr(import_module(f"fewest.explorer.{HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
