"""A service that explains and predicts over HTTP; every model answers in processes of its own.

`serve` runs it, `Settings` holds its limits. What strangers send is read by the workers only: the server counts bytes,
checks keys, and hands the work out.
"""

from __future__ import annotations

from fewest.serving.running import serve
from fewest.serving.settings import Settings

__all__ = ["Settings", "serve"]
