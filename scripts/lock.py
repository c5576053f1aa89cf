"""Write the versions that tests and docs need into constraints.txt, and with their hashes into constraints-hashes.txt.

Run as ``python scripts/lock.py`` with the interpreter of a fresh environment (Linux, x86-64, Python 3.11): it asks pip
what it would install for ``.[docs,test]`` under the first block of constraints.txt, and keeps what pip answers.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

CONSTRAINTS, HASHES = Path("constraints.txt"), Path("constraints-hashes.txt")
BROUGHT = "# What these bring along; written by scripts/lock.py.\n"
HEAD = "# For tests and docs on Linux, x86-64, Python 3.11: pip install --require-hashes --no-deps -r this file.\n"


def name_of(text: str) -> str:
    """A package's name as pip compares it."""
    return re.sub(r"[-_.]+", "-", text).lower()


def main() -> None:
    """Ask pip, and write both files."""
    chosen = CONSTRAINTS.read_text().partition(BROUGHT)[0].rstrip("\n") + "\n"
    CONSTRAINTS.write_text(chosen)
    command = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--report", "-"]
    said = subprocess.run(
        [*command, "-c", CONSTRAINTS, "-e", ".[docs,test]"], stdout=subprocess.PIPE, text=True, check=True
    )
    packages = {}
    for entry in json.loads(said.stdout)["install"]:
        if "archive_info" in entry["download_info"]:
            hashes = entry["download_info"]["archive_info"]["hashes"]
            packages[name_of(entry["metadata"]["name"])] = entry["metadata"]["version"], hashes["sha256"]
    named = {name_of(line.partition("==")[0]) for line in chosen.splitlines() if not line.startswith("#")}
    more = [f"{name}=={version}\n" for name, (version, _) in sorted(packages.items()) if name not in named]
    CONSTRAINTS.write_text(f"{chosen}\n{BROUGHT}{''.join(more)}")
    lines = [f"{name}=={version} --hash=sha256:{digest}\n" for name, (version, digest) in sorted(packages.items())]
    HASHES.write_text(HEAD + "".join(lines))


if __name__ == "__main__":
    main()
