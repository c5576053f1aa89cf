"""A worker: a process that holds one model and answers what comes through its pipe, until the server goes.

Started as ``python -m fewest.apps.serving.worker``. The first frame on its standard input holds the settings; its first
frame back says whether the model is ready. Before it answers requests it says that it has read them: one that was dead
by then has done nothing to them. What the model prints goes nowhere: it could hold values of people.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from fewest.apps import limits
from fewest.apps.serving import wire
from fewest.apps.serving.refusals import RefusedError
from fewest.errors import FewestError, ModelError

LIBRARIES = 3.0  # GB of address space that the libraries of a model take, most of it never touched


def main() -> int:
    """Read settings, load the model, answer."""
    limits.leave_no_core()
    limits.end_with_parent()
    limits.leave_no_network()
    limits.write_only_in(limits.scratch_places())
    source, sink = sys.stdin.buffer, private_output()
    settings = json.loads(wire.read(source))
    try:
        answerer = load(settings)
    except MemoryError:
        return _fail(sink, ModelError("the model takes more memory than --memory allows", do="raise --memory"))
    except FewestError as error:
        return _fail(sink, error)
    except Exception as error:
        return _fail(sink, ModelError(f"the model cannot be loaded: {reason_of(error)}", do="save the explainer again"))
    _send(sink, [wire.json_frame({"ready": True, "model": answerer.describe()})])
    try:
        return serve(source, sink, answerer.answer, float(settings["hard_limit"]))
    except (EOFError, BrokenPipeError):
        return 0


def private_output() -> IO[bytes]:
    """The pipe to the server, moved out of the way of whatever prints."""
    own = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return own


def load(settings: dict[str, Any]) -> Any:
    """What answers: the model of a file, tried out."""
    from fewest.apps.serving.answers import Answerer

    memory = float(settings["memory"])
    limits.limit_memory(memory + LIBRARIES, for_good=False)
    limits.limit_processor(float(settings["start_limit"]))
    module, _, name = str(settings["loader"]).partition(":")
    explainer = getattr(import_module(module), name)(Path(settings["path"]))
    names = ("max_instances", "max_alternatives", "time_limit")
    answerer = Answerer(explainer, **{name: settings[name] for name in names})
    limits.limit_memory(memory, for_good=True)
    return answerer


def serve(
    source: IO[bytes], sink: IO[bytes], answer: Callable[[list[str], list[bytes]], list[wire.Reply]], seconds: float
) -> int:
    """Answer until the server goes; the client hears of an error nobody foresaw without its values."""
    while True:
        verbs = json.loads(wire.read(source))["verbs"]
        bodies = [wire.read(source) for _ in verbs]
        _send(sink, [wire.json_frame({"read": len(verbs)})])
        limits.limit_processor(seconds)
        try:
            replies = answer(verbs, bodies)
        except MemoryError:
            # What is left after this is not to be trusted: the server sees the end and starts another worker.
            os._exit(wire.OUT_OF_MEMORY)
        except Exception as error:
            replies = [_unforeseen(error, len(verbs))] * len(verbs)
        _send(sink, [part for reply in replies for part in (wire.json_frame(reply.head), wire.frame(reply.body))])


def reason_of(error: BaseException) -> str:
    """The kind of an error and where it came up; not its text, which may hold values."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    code = trace.tb_frame.f_code
    return f"{type(error).__name__} in {Path(code.co_filename).name}, line {trace.tb_lineno} ({code.co_name})"


def _unforeseen(error: Exception, requests: int) -> wire.Reply:
    if requests > 1:
        return wire.Reply({"again": True}, b"")
    refusal = RefusedError(500, "the model failed on these instances", "model", reason_of(error), "ask the operator")
    return wire.Reply({"status": 500, "failure": reason_of(error)}, refusal.body())


def _send(sink: IO[bytes], frames: list[bytes]) -> None:
    sink.write(b"".join(frames))
    sink.flush()


def _fail(sink: IO[bytes], error: FewestError) -> int:
    _send(sink, [wire.json_frame({"ready": False, "message": error.message, "do": error.do})])
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
