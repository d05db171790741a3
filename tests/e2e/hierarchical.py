"""Training over the hierarchical back end, on one host and on emulated hosts of two ranks each."""
import unittest

from support import Case


class Hierarchical(Case):
    def train_on(self, program, ranks, model, *arguments, run_dir="run"):
        done = self.run_program(ranks, model, *arguments, "--set", "parallel.comm=hierarchical", "--set",
                                f"run.dir={run_dir}", program=program)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def check(self, ranks, program):
        summary = self.summary()
        self.assert_close(self.losses(), self.losses("serial"), 1e-9, f"{program} on {ranks} ranks")
        self.assertEqual(summary["bytes_moved_per_step"], summary["bytes_planned_per_step"])
        if ranks > 1:
            self.assertGreater(summary["bytes_moved_per_step"], 0)

    def test_follows_the_serial_run(self):
        model = self.model()
        self.train(1, model, run_dir="serial")
        for program, ranks in (("soybean_train", 1), ("soybean_train", 4), ("train_on_emulated_hosts", 4),
                               ("train_on_emulated_hosts", 5), ("train_on_emulated_hosts", 6)):
            for mesh in ((), ("--set", f"parallel.mesh=[{ranks}]")):
                if ranks == 1 and mesh:
                    continue
                with self.subTest(program=program, ranks=ranks, mesh=mesh):
                    self.train_on(program, ranks, model, *mesh)
                    self.check(ranks, program)

    def test_the_resolved_configuration_keeps_it(self):
        self.train_on("train_on_emulated_hosts", 2, self.model(), "--set", "train.steps=1")
        self.assertIn('comm = "hierarchical"', (self.folder / "run" / "config.toml").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
