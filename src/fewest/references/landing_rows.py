"""Where answers lead that have values of their own: the references of one table of answers."""

from __future__ import annotations

from dataclasses import dataclass, field

from fewest.references.base import References
from fewest.references.file import Saved


@dataclass(frozen=True, eq=False, kw_only=True)
class Landed(References):
    """Where the answers of one table lead, a row each; files and readers get the references they come from."""

    made: References = field(repr=False)

    def __repr__(self) -> str:
        return repr(self.made)

    def saved(self) -> Saved:
        """What a file of these references holds: for domains, the typical case."""
        return self.made.saved()
