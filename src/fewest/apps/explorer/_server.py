"""The explorer as a process: bound to this machine, with a key in the address it prints."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fewest.apps.explorer._guard import Guard, known_hosts, new_token
from fewest.apps.opener import opener
from fewest.errors import MissingExtraError, UsageError

HOST, PORT = "127.0.0.1", 8765


@dataclass(frozen=True)
class Binding:
    """Where the explorer listens: port 0 takes a free one, ``names`` are further ones it is called by."""

    host: str = HOST
    port: int = PORT
    names: Sequence[str] = ()

    def check(self) -> None:
        """Refuse to listen to other machines unless it was said by which name they may ask."""
        if not is_loopback(self.host) and not self.names:
            raise UsageError(
                f"--host {self.host} lets other machines ask the explorer",
                do="leave it out, or name the address they will use: --allow-host NAME",
            )


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(binding: Binding) -> socket.socket:
    """A socket at the place that was asked for, or at a free port where the usual one is taken."""
    binding.check()
    family = socket.AF_INET6 if ":" in binding.host else socket.AF_INET
    for port in dict.fromkeys((binding.port, 0) if binding.port == PORT else (binding.port,)):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((binding.host, port))
        except OSError as error:
            made.close()
            problem = error
        else:
            return made
    raise UsageError(
        f"{binding.host}:{binding.port} cannot be listened on: {problem.strerror or problem}",
        do="choose another --port, or leave it out",
    )


def serve(app: Any, binding: Binding, ready: Callable[[str], None]) -> None:
    """Serve an application behind a `Guard` until it is stopped.

    ``ready`` gets the address once it can be opened, and the next one each time a browser has used the last.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("the explorer needs uvicorn", do='pip install "fewest[explore]"') from error
    with suppress(ImportError):
        import pyarrow

        # Arrow's own pool would keep 14 MB for a run of a thousand cases.
        pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    made = listen(binding)
    port = int(made.getsockname()[1])
    name = binding.names[0] if binding.names else _shown(binding.host)
    place = f"http://{name}{'' if ':' in name.rpartition(']')[2] else f':{port}'}/?token="

    def renew() -> str:
        token = new_token()
        ready(place + token)
        return token

    own = [f"{_shown(binding.host)}:{port}"] if is_loopback(binding.host) else []
    made.listen(128)
    guard = Guard(app, known_hosts(port, [*own, *binding.names]), renew(), cookie=f"fewest-{port}", renew=renew)
    # No access log: it would hold the key and the cases that were looked at.
    config = uvicorn.Config(
        guard, log_level="warning", access_log=False, server_header=False, date_header=False, lifespan="off",
        ws="none", timeout_graceful_shutdown=2, h11_max_incomplete_event_size=64_000,
    )  # fmt: skip
    try:
        uvicorn.Server(config).run(sockets=[made])
    finally:
        made.close()


def announcer(open_browser: bool = False) -> Callable[[str], None]:
    """What prints the address once it can be opened, opens it where that is asked for, and prints the next ones."""
    opens = opener() if open_browser else None
    announced: list[str] = []

    def announce(address: str) -> None:
        announced.append(address)
        with suppress(OSError):  # where nobody reads it, nobody else is let in
            if len(announced) > 1:
                print(f"A browser was let in. For another one: {address}", flush=True)
            else:
                print(f"Open {address}", flush=True)
                print("The first to open it can look at the run. Stop with Ctrl-C.", file=sys.stderr, flush=True)
        if opens is not None:
            opens(address)

    return announce


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
