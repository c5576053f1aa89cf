"""The code of the documentation: found block by block, run page by page in one namespace.

`python` blocks are run, and a `text` block directly after one is what it prints. `pycon` blocks are doctests. Of `sh`
blocks, the commands `fewest` and `make` must exist with all their options, and those that end by themselves are run.
A block that cannot run has a line above it that says why: ``<!-- not run: reason -->``.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import typer

from fewest.apps.cli._main import app, main

BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]*?) -->\n)?^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", flags=re.S | re.M
)
STAY = {"serve", "explore"}  # these run until they are stopped
LONG = {"bench", "paper"}  # these take minutes to hours


class BrokenPageError(AssertionError):
    """A block of a page does not do what the page says."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    code: str
    line: int
    reason: str | None
    prints: str | None


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page, in order."""
    found = list(BLOCK.finditer(text))
    out = []
    for i, match in enumerate(found):
        after = found[i + 1] if i + 1 < len(found) else None
        follows = after is not None and after["language"] == "text" and not text[match.end() : after.start()].strip()
        line = text[: match.start("code")].count("\n") + 1
        out.append(
            Block(match["language"], match["code"], line, match["reason"], after["code"] if after and follows else None)
        )
    return out


def run_page(text: str, name: str) -> int:
    """Run all blocks of a page in the working directory; how many were run."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for block in blocks(text):
        where = f"{name}, line {block.line}"
        if block.reason is not None:
            continue
        if block.language == "python":
            _run_python(block, namespace, where)
        elif block.language == "pycon":
            _run_session(block, namespace, where)
        elif block.language == "sh":
            _run_commands(block, where)
        count += block.language in ("python", "pycon", "sh")
    return count


def _run_python(block: Block, namespace: dict[str, Any], where: str) -> None:
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (block.line - 1) + block.code, where, "exec"), namespace)
    except Exception as error:
        raise BrokenPageError(f"{where}: {type(error).__name__}: {error}") from error
    if block.prints is not None and printed.getvalue().split() != block.prints.split():
        raise BrokenPageError(f"{where}: prints\n{printed.getvalue()}\nand the page says\n{block.prints}")


def _run_session(block: Block, namespace: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.code, {}, where, where, block.line)
    test.globs = namespace
    told = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=told.write, clear_globs=False)
    if runner.failures:
        raise BrokenPageError(f"{where}:\n{told.getvalue()}")


def _run_commands(block: Block, where: str) -> None:
    for line in commands(block.code):
        words = shlex.split(line, comments=True)
        if words[0] != "fewest" or words[1] in STAY | LONG:
            continue
        expected = re.search(r"# ends with (\d+)", line)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = main(words[1:])
        if code != (int(expected[1]) if expected else 0):
            raise BrokenPageError(f"{where}: `{line}` ends with {code}\n{out.getvalue()}")


def commands(code: str) -> list[str]:
    """Lines of a shell block that begin with `fewest`, `make` or `pip`, continued lines joined."""
    lines = code.replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if re.match(r"(fewest|make|pip) ", line.strip())]


def named_commands(text: str) -> Iterator[str]:
    """Every command a page names: in shell blocks, and in running text between backquotes."""
    for block in blocks(text):
        if block.language == "sh":
            yield from commands(block.code)
    running = BLOCK.sub("", text)
    for span in re.findall(r"`((?:fewest|make) [^`]+)`", running):
        yield " ".join(span.split())


def check_command(line: str, targets: set[str], extras: set[str]) -> None:
    """Refuse a command, sub-command, option, make target or extra that does not exist."""
    words = shlex.split(line.replace("[", " ").replace("]", " ") if line.startswith("fewest") else line, comments=True)
    if words[0] == "make":
        missing = [word for word in words[1:] if "=" not in word and word not in targets]
    elif words[0] == "pip":
        asked = re.findall(r"fewest\[([^]]*)\]", line)
        missing = [extra for group in asked for extra in group.split(",") if extra not in extras]
    else:
        missing = _unknown(words[1:])
    if missing:
        raise BrokenPageError(f"`{line}`: there is no {', '.join(missing)}")


@cache
def _root() -> Any:
    return typer.main.get_command(app)


def _unknown(words: list[str]) -> list[str]:
    """Words of a `fewest` command that are neither its sub-commands nor its options."""
    command = _root()
    rest = list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            return [name]
        command = command.commands[name]
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help", "-h"}
    return [word for word in rest if re.match(r"--?[a-z]", word) and word.split("=")[0] not in known]
