"""A service in a process of its own, for tests and for the load benchmark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
KEY = "a-key-for-tests"
RUN = """
import json, sys
from pathlib import Path
from fewest.apps.serving import ServiceSettings, serve
given = json.loads(sys.argv[1])
models = [Path(path) for path in given.pop("models")]
keys = given.pop("keys", None)
sys.exit(serve(models, ServiceSettings(port=0, keys=Path(keys) if keys else None, **given)))
"""


class Service:
    """A service in a process of its own, its log read as it is written."""

    def __init__(self, models: list[str], **settings: Any) -> None:
        pytest.importorskip("fastapi", reason='the service needs pip install "fewest[serve]"')
        httpx = pytest.importorskip("httpx", reason="the tests of the service need httpx")
        given = json.dumps({"models": models, **settings})
        before = os.environ.get("PYTHONPATH", "")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE), before)))}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", RUN, given], stderr=subprocess.PIPE, text=True, env=environment
        )
        self.lines: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        # A cold start compiles the searches, which takes long on a busy machine.
        self.port = int(self.event("listening", seconds=300)["port"])
        headers = {"Authorization": f"Bearer {KEY}"} if "keys" in settings else {}
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=60)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def event(self, name: str, count: int = 1, seconds: float = 60.0) -> dict[str, Any]:
        """The line of an event, once it has come so often."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = [line for line in list(self.lines) if line["event"] == name]
            if len(found) >= count:
                return found[-1]
            if self.process.poll() is not None and not self._reader.is_alive():
                break
            time.sleep(0.02)
        raise AssertionError(f"no event {name!r} in {self.lines}")

    def ask(self, model: str, instances: Any, verb: str = "explain", **parameters: Any) -> Any:
        body = {"instances": instances, **({"parameters": parameters} if parameters else {})}
        return self.client.post(f"/v1/models/{model}:{verb}", json=body)

    def post(self, model: str, text: bytes | str, verb: str = "explain") -> Any:
        path = f"/v1/models/{model}:{verb}"
        return self.client.post(path, content=text, headers={"Content-Type": "application/json"})

    def stop(self) -> int:
        """Stop it in order; its exit code."""
        self.client.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        self._reader.join(timeout=10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code
