from ._app import create_app
from ._guard import Guard, known_hosts, new_token
from ._live import Live
from ._server import Binding, announcer, serve

__all__ = ["Binding", "Guard", "Live", "announcer", "create_app", "known_hosts", "new_token", "serve"]
