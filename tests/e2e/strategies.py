"""Over the model files in inputs/ and rank counts from 1 to 64: no named strategy moves less than auto, and no plan less
than what is proven to be needed.

usage: strategies.py [--full] [MODEL …]   (small variants and a spread of rank counts, or everything; of these models)
"""
import json
import math
import sys
import unittest

from support import INPUTS, STRATEGIES, Case

FULL = "--full" in sys.argv
CHOSEN = [a for a in sys.argv[1:] if not a.startswith("-")]
BATCH = 64  # as many samples as the most ranks have, not divisible by most counts
SPREAD = (1, 2, 3, 4, 5, 6, 7, 9, 11, 13, 31, 61)
QUICK = {"lenet_small", "digits_mlp", "alexnet_small", "mobilenet_v2_small"}  # are planned for many cuts, too
FEW_SAMPLES = 3  # rows of images are split, too
MANY_CUTS = (8, 12, 15, 16, 27, 30, 45, 60, 64)


def primes(number):
    """Ascending."""
    for p in range(2, number + 1):
        if number % p == 0:
            return [p, *primes(number // p)]
    return []


def begins(ranks, more):
    """Whether the cuts of `more` ranks begin with those of `ranks`: primes, descending."""
    mesh, longer = primes(ranks)[::-1], primes(more)[::-1]
    return longer[: len(mesh)] == mesh


def parameters(report):
    return sum(math.prod(t["shape"]) for t in report["tensors"] if t["role"] == "parameter" and not t["name"].endswith(".next"))


class Strategies(Case):
    def plan(self, model, ranks, batch):
        done = self.run_program(0, INPUTS / f"{model}.toml", "--ranks", ranks, "--json", "--set", f"data.batch={batch}",
                                program="soybean_plan", timeout=7200)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check(self, model, ranks, batch=BATCH):
        """Bytes of every strategy, and what no plan is below."""
        report = self.plan(model, ranks, batch)
        found = {strategy: report["strategies"][strategy]["bytes"] for strategy in STRATEGIES}
        auto = report["strategies"]["auto"]
        for strategy in STRATEGIES:
            self.assertLessEqual(found["auto"], found[strategy], strategy)
        # Data parallelism sums every gradient; batch norms' statistics come on top of that.
        self.assertGreaterEqual(found["data"], 2 * (ranks - 1) * 4 * parameters(report))
        self.assertEqual(auto["status"] == "optimal", auto["gap"] == 0, auto)
        self.assertGreaterEqual(auto["gap"], 0)
        self.assertLess(auto["gap"], 0.1)
        if ranks == 1:
            self.assertEqual(set(found.values()), {0})
        return found, found["auto"] / (1 + auto["gap"])

    def check_all(self, model):
        counts = range(1, 65) if FULL else sorted(SPREAD + (MANY_CUTS if model in QUICK else ()))
        known = {}
        for ranks in counts:
            with self.subTest(model=model, ranks=ranks):
                known[ranks] = self.check(model, ranks)
        for ranks, (_, bound) in known.items():
            for more, (found, _) in known.items():
                if more > ranks and begins(ranks, more):  # further cuts never make a plan move less
                    with self.subTest(model=model, ranks=ranks, more=more):
                        self.assertGreaterEqual(min(found.values()), bound * (1 - 1e-12))
        for ranks in (4, 5, 6, 7, 8, 13) if model in QUICK else (5, 7, 13):
            with self.subTest(model=model, ranks=ranks, batch=FEW_SAMPLES):
                self.check(model, ranks, FEW_SAMPLES)


for path in sorted(INPUTS.glob("*.toml")):
    wanted = path.stem in CHOSEN if CHOSEN else FULL or path.stem.endswith("_small") or path.stem.startswith("digits")
    if wanted:
        setattr(Strategies, f"test_{path.stem}", lambda self, model=path.stem: self.check_all(model))

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
