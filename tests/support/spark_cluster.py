"""A Spark cluster on this machine, as processes that can be killed: a master and its workers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

# Short-lived Java processes: the quick compiler and the small collector are the cheaper ones.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
SMALL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
    "spark.log.level": "OFF",
    "spark.task.maxFailures": "2",
}


class Cluster:
    """A Spark master and its workers, each a process group of its own."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        self.folder, self.program = folder, str(home / "bin" / "spark-class")
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(folder),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA,
            "PYSPARK_PYTHON": sys.executable,
            "OMP_NUM_THREADS": "1",
        }
        self.workers: list[subprocess.Popen[bytes]] = []
        self.url = ""
        self._all: list[subprocess.Popen[bytes]] = []

    def start(self, workers: int) -> None:
        log = self._launch("master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = wait_for(lambda: found(r"spark://127\.0\.0\.1:\d+", log), 60, "the master")
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        self._launch(
            "worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "600M",
            "--work-dir", str(self.folder / "work"), self.url,
        )  # fmt: skip
        self.workers.append(self._all[-1])

    def _launch(self, name: str, *options: str) -> Path:
        log = self.folder / f"{name}-{len(self._all)}.log"
        with log.open("wb") as file:
            call = [self.program, f"org.apache.spark.deploy.{name}", *options]
            self._all.append(
                subprocess.Popen(call, env=self.environment, stdout=file, stderr=file, start_new_session=True)
            )
        return log

    def executors(self) -> list[int]:
        """Process ids of the executors that are alive, oldest worker first."""
        return [child for worker in self.workers for child in children(worker.pid)]

    def stop(self) -> None:
        for process in self._all:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def children(pid: int) -> list[int]:
    """Processes that this one started, from any of its threads, and that have not ended."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        state, parent = status(int(entry.name))
        if parent == pid and state != "Z":
            found.append(int(entry.name))
    return found


def status(pid: int) -> tuple[str, int]:
    """State and parent of a process; "Z" of one that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return "Z", 0
    return fields[0], int(fields[1])


def found(pattern: str, file: Path) -> str:
    match = re.search(pattern, file.read_text(errors="replace"))
    return match.group() if match else ""


def wait_for(ask: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first answer that is not empty."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = ask()
        if answer:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{what} did not come within {seconds:g} seconds")


@contextmanager
def connected(cluster: Cluster, settings: dict[str, str]) -> Iterator[Any]:
    """A session whose driver is this process."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    environment = pytest.MonkeyPatch()
    for name in ("SPARK_HOME", "SPARK_LOCAL_IP", "PYSPARK_PYTHON"):
        environment.setenv(name, cluster.environment[name])
    builder = SparkSession.builder.master(cluster.url).appName("test")
    for name, value in {**SMALL, **settings}.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
        try:
            yield session
        finally:
            session.stop()
    finally:
        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown()
            gateway.proc.stdin.close()  # Java ends with it
            gateway.proc.wait(30)
            SparkContext._gateway = SparkContext._jvm = None
        environment.undo()


def killed_in_the_middle(session: Any, action: Callable[[], Any], pid: int, tasks: int) -> tuple[Any, Any]:
    """Kill a process while two tasks run; what the action returned, and what Spark says of the stage it was in."""
    tracker = session.sparkContext.statusTracker()

    def midway() -> Any:
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
        at_work = [stage for stage in stages if stage and (stage.numTasks, stage.numActiveTasks) == (tasks, 2)]
        return next((stage for stage in at_work if 2 <= stage.numCompletedTasks < tasks - 2), None)

    with ThreadPoolExecutor(1) as other:
        answers = other.submit(action)
        try:
            stage = wait_for(lambda: None if answers.done() else midway(), 150, "a stage with both executors at work")
            os.kill(pid, signal.SIGKILL)
            assert not answers.done()
            result = answers.result(240)
        except BaseException:
            session.sparkContext.cancelAllJobs()
            raise
    assert status(pid)[0] == "Z"
    return result, tracker.getStageInfo(stage.stageId)
