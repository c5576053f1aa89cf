"""Check that every local link and picture of built pages leads to a file, and to a place in it where it names one.

Run as ``python scripts/check_links.py docs/_build``; ends with 1 and a list where one does not.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links out of a page, and the names of places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to and is called."""
        found = dict(attrs)
        self.places.update(value for name in ("id", "name") if (value := found.get(name)))
        self.links.update(value for name in ("href", "src") if (value := found.get(name)))


def broken(folder: Path) -> tuple[list[str], int]:
    """Local links that lead nowhere, each with its page, and how many there are in all."""
    files = [path.resolve() for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text("utf-8")) for path in files}
    wrong, count = [], 0
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            known = pages[target].places if target in pages else set()
            if not target.is_file() or (place and target in pages and place not in known):
                wrong.append(f"{path.relative_to(folder.resolve())}: {link}")
    return wrong, count


def main() -> int:
    """Print what is broken; 1 where anything is."""
    wrong, count = broken(Path(sys.argv[1]))
    print("\n".join(wrong) or f"{count:,} local links lead somewhere", file=sys.stderr if wrong else sys.stdout)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
