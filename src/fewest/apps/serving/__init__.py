"""A service that explains and predicts over HTTP; every model answers in processes of its own.

`serve` runs it, `ServiceSettings` holds its limits. What strangers send is read by the workers only: the server counts
bytes, checks keys, and hands the work out.
"""

from __future__ import annotations

from fewest.apps.serving.server import serve
from fewest.apps.serving.settings import ServiceSettings

__all__ = ["ServiceSettings", "serve"]
