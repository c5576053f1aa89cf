"""Pages from templates: one frame around all of them, everything escaped, a name that is not given is an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse

from fewest.results import drawing

PLACES = (
    ("Start", "/"),
    ("Population", "/population"),
    ("Decision", "/decision"),
    ("References", "/references"),
    ("Compare", "/compare"),
    ("Tree", "/tree"),
)
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Place:
    """An entry of the navigation."""

    name: str
    href: str


@dataclass(frozen=True)
class Site:
    """What all pages share.

    Attributes
    ----------
    about : str
        The run in a few words, at the top of every page.
    live : str
        Name of the model that can be asked; empty where none can.
    places : sequence of Place
    """

    about: str
    live: str = ""
    places: Sequence[Place] = field(default_factory=lambda: [Place(*place) for place in PLACES])

    def page(
        self, template: str, here: str, heading: str, question: str, *, notices: Sequence[str] = (), status: int = 200,
        **values: Any,
    ) -> HTMLResponse:  # fmt: skip
        """One page."""
        from fewest import __version__

        shared = {
            "about": self.about, "live": self.live, "places": self.places, "here": here, "heading": heading,
            "question": question, "notices": notices, "release": __version__,
        }  # fmt: skip
        text = environment().get_template(template).render(**shared, **values)
        # Text that UTF-8 cannot hold (lone surrogates) is replaced: it must not spoil the page.
        return HTMLResponse(text.encode("utf-8", "replace"), status)


@cache
def environment() -> Environment:
    """The templates of this package."""
    return Environment(
        loader=PackageLoader("fewest.apps.explorer"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """The few files beside the pages, by name; nothing else can be asked for by name."""
    from fewest.reporting._tree import STYLE as TREE_STYLE

    files = {
        file.name: file.read_bytes()
        for file in resources.files("fewest.apps.explorer").joinpath("static").iterdir()
        if file.is_file()
    }
    files |= {"drawing.css": drawing.STYLE.encode(), "tree.css": TREE_STYLE.encode()}
    return {name: (data, KINDS["." + name.rpartition(".")[2]]) for name, data in files.items()}
