from ._app import create_app
from ._guard import Guard, known_hosts, new_token
from ._live import Live
from ._server import Announcer, Binding, serve

__all__ = ["Announcer", "Binding", "Guard", "Live", "create_app", "known_hosts", "new_token", "serve"]
