"""Pages from templates: everything is escaped, and a name that is not given is an error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, package: str = "fewest.reporting", **values: Any) -> str:
    """A page of a package's templates."""
    from fewest import __version__

    page = _environment(package).get_template(template).render(release=__version__, **values)
    # Text that UTF-8 cannot hold (lone surrogates) would make the page impossible to save.
    return page.encode("utf-8", "replace").decode("utf-8")


@cache
def _environment(package: str) -> Environment:
    """Where templates come from; it keeps those it has compiled."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
