"""The explorer in a process that holds nothing else: ``fewest explore`` becomes it once its options are read.

The command line's own libraries and Arrow's usual memory pool would take 15 MB for nothing while it serves.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fewest.errors import FewestError

if TYPE_CHECKING:
    from fewest.apps.explorer import Live


def become(settings: Mapping[str, Any]) -> None:
    """Replace this process by an explorer; it does not return. Only where the system can do that (not Windows)."""
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-m", "fewest.apps.explorer", json.dumps(dict(settings))]
    os.execve(sys.executable, command, {"ARROW_DEFAULT_MEMORY_POOL": "system", **os.environ})


def serve_run(settings: Mapping[str, Any], live: Live | None = None) -> None:
    """Serve what the settings name, until it is stopped."""
    from fewest.apps.explorer import Binding, announcer, create_app, serve

    app = create_app(settings["run"], other=settings["other"], live=live, protected=settings["protected"])
    serve(app, Binding(settings["host"], settings["port"], settings["names"]), announcer(settings["open_browser"]))


def main() -> int:
    """Read the settings of the command line and serve."""
    try:
        serve_run(json.loads(sys.argv[1]))
    except FewestError as error:
        print(f"fewest: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
