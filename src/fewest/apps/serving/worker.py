"""A worker: a process that holds one model and answers what comes through its pipe, until the server goes.

Started as ``python -m fewest.apps.serving.worker``. The first frame on its standard input holds the settings; its first
frame back says whether the model is ready. What the model prints goes nowhere: it could hold values of people.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from fewest.apps.serving import wire
from fewest.apps.serving.refusals import RefusedError
from fewest.errors import FewestError, ModelError

LIBRARIES = 3.0  # GB of address space that the libraries of a model take, most of it never touched
DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)


def main() -> int:
    """Read settings, load the model, answer."""
    leave_no_core()
    end_with_parent()
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
    limit_memory(memory + LIBRARIES, for_good=False)
    limit_processor(float(settings["start_limit"]))
    module, _, name = str(settings["loader"]).partition(":")
    explainer = getattr(import_module(module), name)(Path(settings["path"]))
    names = ("max_instances", "max_alternatives", "time_limit")
    answerer = Answerer(explainer, **{name: settings[name] for name in names})
    limit_memory(memory, for_good=True)
    return answerer


def serve(
    source: IO[bytes], sink: IO[bytes], answer: Callable[[list[str], list[bytes]], list[wire.Reply]], seconds: float
) -> int:
    """Answer until the server goes; the client hears of an error nobody foresaw without its values."""
    while True:
        verbs = json.loads(wire.read(source))["verbs"]
        bodies = [wire.read(source) for _ in verbs]
        limit_processor(seconds)
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


def address_space() -> int | None:
    """Bytes of address space this process has; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        import resource

        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return None


def limit_memory(gigabytes: float, *, for_good: bool) -> None:
    """Let allocations fail beyond this much more than now, where the system can; ``for_good`` it cannot be raised."""
    now = address_space()
    if now is None:
        return
    import resource

    size = now + int(gigabytes * 2**30)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        size = min(size, most)
    resource.setrlimit(resource.RLIMIT_AS, (size, size if for_good else most))


def limit_processor(seconds: float) -> None:
    """Let the system end this process after this many more seconds of work, should nobody else do so."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds) + 1, most))


def leave_no_core() -> None:
    """No core file: it would hold cases."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_with_parent() -> None:
    """Be killed when the server ends, also in the middle of an answer (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
