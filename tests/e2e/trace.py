"""The timeline of --trace."""
import json
import unittest

from support import TINY, Case


class Trace(Case):
    def events(self, run_dir="run"):
        return json.loads((self.folder / run_dir / "trace.json").read_text())["traceEvents"]

    def test_every_rank_shows_what_it_did(self):
        done = self.train(3, self.model(), "--trace=2", "--strategy", "data")
        self.assertIn("timeline of steps 2 to 3: run/trace.json", done.stdout)
        events = self.events()
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        self.assertEqual(names, {0: "rank 0", 1: "rank 1", 2: "rank 2"})
        for rank in range(3):
            own = [e for e in events if e["pid"] == rank]
            computed = [e["name"] for e in own if e.get("cat") == "computing"]
            for name in ("conv2d+bias+relu conv2d_1", "dense_grad_weight dense_2.weight.grad"):
                self.assertEqual(computed.count(name), 2, (rank, name))
            for track in ("computing", "waiting", "host"):  # a track's events follow each other
                line = sorted((e["ts"], e["dur"]) for e in own if e.get("cat") == track)
                self.assertTrue(line, track)
                for (begin, seconds), (following, _) in zip(line, line[1:]):
                    self.assertLessEqual(begin + seconds, following + 0.01, track)
            begun = {e["id"]: e for e in own if e["ph"] == "b"}
            ended = {e["id"]: e for e in own if e["ph"] == "e"}
            self.assertEqual(begun.keys(), ended.keys())
            sums = [e for e in begun.values() if e["name"] == "all_reduce dense_1.weight.grad@partial"]
            self.assertEqual(len(sums), 2)
            for event in sums:
                self.assertEqual(event["args"]["bytes"], 4 * 16 * 54 * 8 // 3)  # 2(P-1)/P of the gradient, fp64
                self.assertGreater(ended[event["id"]]["ts"], event["ts"])

    def test_of_runs_with_few_steps_and_of_none(self):
        self.train(2, self.model(), "--trace", "--set", "train.steps=1")
        self.assertEqual([e["name"] for e in self.events()].count("waiting for the batch"), 2)
        done = self.train(1, self.model(), "--trace", "--set", "train.steps=3", run_dir="serial")
        self.assertIn("timeline of steps 2 to 3", done.stdout)
        self.assertFalse([e for e in self.events("serial") if e["ph"] == "b"])
        self.train(1, self.model(), run_dir="plain")
        self.assertFalse((self.folder / "plain" / "trace.json").exists())

    def test_what_is_refused(self):
        for arguments, said in ((("--trace=0",), "--trace: got 0 expected a number of steps from 1 to 1000"),
                                (("--trace=3x",), "--trace: got 3x expected a number of steps"),
                                (("--trace", "--eval"), "--trace: got --eval as well expected a training run")):
            done = self.train(2, self.model(), *arguments, expect=2)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stderr.count("soybean_train:"), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
