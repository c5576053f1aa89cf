"""Requests per second and response times of `fewest serve`, with many clients at once.

    python benchmarks/serve_load.py [--clients 200] [--seconds 60] [--workers 1] [--verb explain]

Every answer is compared with the explainer's own. The clients run here, on the same machine as the service.
"""

from __future__ import annotations

import argparse

from fewest.experiments.benchmarking.service import expected_of, german, hammer, loaded, running

__all__ = ["expected_of", "hammer"]  # the tests ask a service of their own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--verb", choices=("explain", "predict"), default="explain")
    given = parser.parse_args()
    explainer, cases = german()
    asked = expected_of(explainer, cases, given.verb)
    with running(explainer, given.workers) as (pid, port):
        for clients in sorted({1, given.clients}):
            load, cost = loaded(pid, port, given.verb, asked, clients, given.seconds)
            what = f"{given.verb}, {clients} clients, {given.workers} workers"
            print(f"{what}: {load}; {1e3 * cost:.1f} CPU ms per answer")


if __name__ == "__main__":
    main()
