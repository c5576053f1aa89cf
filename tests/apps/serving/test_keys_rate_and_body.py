"""The gate: keys, token buckets and counted bodies, each with a broken twin that the same check must catch."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("prometheus_client", reason='the service needs pip install "fewest[serve]"')

from fewest.apps.serving.door import Buckets, read_keys
from fewest.apps.serving.refusals import RefusedError, check_headers, read_body
from fewest.apps.serving.settings import ServiceSettings
from fewest.errors import UsageError

JSON = {"content-type": "application/json"}


def test_keys_are_read_and_known_by_their_sums(keys_file: Path) -> None:
    keys = read_keys(keys_file)
    assert [keys.who(key) for key in ("a-key-for-tests", "another", "", "a-key-for-test", "ä")] == [
        "bank", "clinic", None, None, None,
    ]  # fmt: skip


def test_every_line_is_compared_in_constant_time(keys_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[str] = []
    real = hmac.compare_digest

    def spy(shown: str, known: str) -> bool:
        compared.append(known)
        return real(shown, known)

    monkeypatch.setattr(hmac, "compare_digest", spy)
    read_keys(keys_file).who("a-key-for-tests")
    assert len(compared) == 2


@pytest.mark.parametrize("text", ["", "# nothing\n", "bank\n", "bank:secret\n", "ba nk:" + "0" * 64, "a:" + "g" * 64])
def test_a_keys_file_that_holds_something_else_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.txt"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_keys(path)
    assert "secret" not in caught.value.message


def test_a_name_twice_and_no_file_at_all_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.txt"
    path.write_text(f"a:{'0' * 64}\na:{'1' * 64}\n")
    with pytest.raises(UsageError, match=r'line 2 .* "a" stands there already'):
        read_keys(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_keys(tmp_path / "none")


def test_without_keys_only_this_machine_is_served() -> None:
    for host in ("127.0.0.1", "::1", "localhost"):
        assert ServiceSettings(host=host).host == host
    with pytest.raises(UsageError, match="for this machine only"):
        ServiceSettings(host="0.0.0.0")
    assert ServiceSettings(host="0.0.0.0", keys=Path("keys.txt")).host == "0.0.0.0"


@pytest.mark.parametrize("name", ["workers", "memory", "time_limit", "max_body", "queue"])
def test_limits_are_positive(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        ServiceSettings(**{name: 0})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=name):
        ServiceSettings(**{name: -1})  # type: ignore[arg-type]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def passes_at_most_what_is_allowed(make: Callable[[float, float, Clock], Buckets], pauses: list[float]) -> None:
    """In any stretch of time a key gets burst + rate * seconds requests through at most; after a wait it does."""
    rate, burst, clock = 5.0, 3.0, Clock()
    buckets = make(rate, burst, clock)
    times: list[float] = []
    for pause in pauses:
        clock.now += pause
        wait = buckets.take("bank")
        if wait == 0:
            times.append(clock.now)
        else:
            clock.now += wait + 1e-9
            assert buckets.take("bank") == 0, "a client that waits as long as asked gets through"
            times.append(clock.now)
    for first in range(len(times)):
        for last in range(first, len(times)):
            assert last - first + 1 <= burst + rate * (times[last] - times[first]) + 1e-6


@given(st.lists(st.floats(0, 2), min_size=8, max_size=30))
def test_a_bucket_lets_through_what_is_allowed_and_no_more(pauses: list[float]) -> None:
    passes_at_most_what_is_allowed(Buckets, pauses)


class NeverEmpty(Buckets):
    def take(self, name: str) -> float:
        return 0.0


class FullAgain(Buckets):
    """Forgets what was taken as soon as any time has passed."""

    def take(self, name: str) -> float:
        if self._held.get(name, (0, self.clock()))[1] != self.clock():
            del self._held[name]
        return super().take(name)


class NeverFull(Buckets):
    """Nothing comes back."""

    def take(self, name: str) -> float:
        tokens, _ = self._held.get(name, (self.burst, 0.0))
        self._held[name] = tokens - 1, 0.0
        return 0.0 if tokens >= 1 else 1.0


@pytest.mark.parametrize("broken", [NeverEmpty, FullAgain, NeverFull])
def test_a_broken_bucket_is_caught_by_the_same_check(broken: type[Buckets]) -> None:
    with pytest.raises(AssertionError):
        passes_at_most_what_is_allowed(broken, [0.0, 0.0, 0.0, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01])


def test_keys_have_buckets_of_their_own_and_rate_zero_sets_no_limit() -> None:
    buckets = Buckets(1, 1, Clock())
    assert [buckets.take(name) for name in ("a", "b", "a")] == [0.0, 0.0, 1.0]
    assert {Buckets(0, 1, Clock()).take("a") for _ in range(50)} == {0.0}


async def stream(chunks: list[bytes], taken: list[int], pause: float = 0.0) -> AsyncIterator[bytes]:
    for chunk in chunks:
        await asyncio.sleep(pause)
        taken.append(len(chunk))
        yield chunk


Reader = Callable[[AsyncIterator[bytes], int, float], object]


def stops_at_the_limit(reader: Reader) -> None:
    taken: list[int] = []
    with pytest.raises(RefusedError) as caught:
        asyncio.run(reader(stream([b"x" * 10] * 1000, taken), 95, 5.0))  # type: ignore[arg-type]
    assert caught.value.status == 413
    assert sum(taken) == 100, "no more is read than it takes to know"


def test_a_body_is_counted_while_it_comes_in() -> None:
    stops_at_the_limit(read_body)
    assert asyncio.run(read_body(stream([b"ab", b"", b"c"], []), 3, 5.0)) == b"abc"


async def reads_all_then_counts(chunks: AsyncIterator[bytes], limit: int, seconds: float) -> bytes:
    return await read_body(_once(b"".join([chunk async for chunk in chunks])), limit, seconds)


async def counts_chunks(chunks: AsyncIterator[bytes], limit: int, seconds: float) -> bytes:
    return b"".join([chunk async for chunk in chunks][:limit])


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.mark.parametrize("broken", [reads_all_then_counts, counts_chunks])
def test_a_broken_counter_is_caught_by_the_same_check(broken: Reader) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        stops_at_the_limit(broken)


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    with pytest.raises(RefusedError) as caught:
        asyncio.run(read_body(stream([b"a"] * 100, [], pause=0.05), 1000, 0.2))
    assert caught.value.status == 408


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"content-type": "text/plain"}, 415),
        ({**JSON, "content-encoding": "gzip"}, 415),
        ({**JSON, "content-length": "11"}, 413),
    ],
)
def test_headers_alone_can_be_enough_to_refuse(headers: dict[str, str], status: int) -> None:
    with pytest.raises(RefusedError) as caught:
        check_headers(headers, 10)
    assert caught.value.status == status


@pytest.mark.parametrize("length", ["10", "", "-5", "²", "1" * 30, "x"])
def test_a_length_that_says_nothing_is_left_to_the_count(length: str) -> None:
    check_headers({"content-type": "Application/JSON; charset=utf-8", "content-length": length}, 10)


def test_metrics_are_prometheus_text_with_escaped_labels_and_cumulative_buckets() -> None:
    pytest.importorskip("prometheus_client", reason='the service needs pip install "fewest[serve]"')
    from fewest.apps.serving.door import Metrics

    pool: Any = SimpleNamespace(ready=2, busy=1, inside=3, lost={"hung": 4})
    metrics = Metrics({"m": pool})
    metrics.requests.labels("GET", 'a"b\\c\nd', 200).inc(2)
    for seconds in (0.004, 0.3, 99):
        metrics.request_seconds.labels("p").observe(seconds)
    lines = metrics.text().decode().splitlines()
    assert r'fewest_requests_total{method="GET",path="a\"b\\c\nd",status="200"} 2.0' in lines
    assert [line.split()[1] for line in lines if 'le="0.25"' in line or 'le="0.5"' in line or "+Inf" in line] == [
        "1.0", "2.0", "3.0",
    ]  # fmt: skip
    assert {
        'fewest_workers_ready{model="m"} 2.0',
        'fewest_workers_lost{model="m",why="hung"} 4.0',
        'fewest_request_seconds_count{path="p"} 3.0',
        'fewest_request_seconds_sum{path="p"} 99.304',
        "# TYPE fewest_request_seconds histogram",
    } <= set(lines)
    assert Metrics({}).text().decode().count("fewest_requests_total") == 2, "another app counts for itself"
    assert "_created" not in "".join(lines)


def test_the_sum_in_the_docs_is_the_one_that_is_compared() -> None:
    assert hashlib.sha256(b"secret").hexdigest().startswith("2bb80d537b1da3e3")
