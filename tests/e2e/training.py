"""Parallel runs follow the serial run; what a run leaves; batches smaller than the rank count; one-sample data sets."""
import json
import unittest

from support import INPUTS, STRATEGIES, Case, tensors


class Training(Case):
    def test_every_strategy_and_rank_count_follows_the_serial_run(self):
        model = self.model()
        self.train(1, model, run_dir="serial")
        serial = self.losses("serial")
        weights = tensors(self.folder / "serial" / "checkpoints" / "latest.h5")
        self.assertLess(serial[-1], serial[0])
        for ranks, strategy in ((2, "auto"), (3, "data"), (4, "model"), (5, "owt"), (6, "kcut"), (8, "auto"), (7, "data")):
            with self.subTest(ranks=ranks, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy)
                self.assert_close(self.losses(), serial, 1e-9, f"{strategy} on {ranks}")
                for record in self.metrics():
                    self.assertEqual(record["bytes_moved"], record["bytes_planned"])
                parallel = tensors(self.folder / "run" / "checkpoints" / "latest.h5")
                self.assertEqual(parallel.keys(), weights.keys())
                for name, expected in weights.items():
                    error = abs(parallel[name] - expected).max()
                    self.assertLessEqual(error, 1e-9 * abs(expected).max(), name)
                serial_validation = self.summary("serial")["validation"]
                validation = self.summary()["validation"]
                self.assertAlmostEqual(validation["loss"], serial_validation["loss"], delta=1e-9)
                self.assertEqual(validation["accuracy"], serial_validation["accuracy"])

    def test_a_finished_run_leaves_its_files(self):
        self.train(2, self.model(), "--strategy", "auto")
        for name in ("config.toml", "plan.json", "metrics.jsonl", "summary.json", "checkpoints/latest.h5"):
            self.assertTrue((self.folder / "run" / name).exists(), name)
        summary = self.summary()
        self.assertEqual(
            list(summary),
            ["steps", "stopped_early", "final_loss", "validation", "samples_per_second", "bytes_planned_per_step",
             "bytes_moved_per_step", "peak_memory", "ranks", "strategy", "microbatches", "recompute"])
        self.assertEqual(summary["steps"], 12)
        self.assertEqual(summary["ranks"], 2)
        self.assertEqual(summary["bytes_planned_per_step"], summary["bytes_moved_per_step"])

    def test_the_resolved_config_and_the_plan_give_the_same_run_again(self):
        self.train(2, self.model(), run_dir="first")
        self.train(2, self.folder / "first" / "config.toml", "--set", f"parallel.plan={self.folder}/first/plan.json",
                   run_dir="second")
        self.assertEqual(self.losses("first"), self.losses("second"))

    def test_a_run_may_be_planned_for_time(self):
        model = self.model()
        self.train(1, model, run_dir="serial")
        arguments = ("--machine", "laptop", "--set", "parallel.objective=time")
        done = self.train(4, model, *arguments, "--set", "parallel.mesh=[2,2]")
        self.assertRegex(done.stdout, r"kB moved, [0-9.]+ [mu]s per step, proven optimal")
        self.assert_close(self.losses(), self.losses("serial"), 1e-9, "planned for time")
        for record in self.metrics():
            self.assertEqual(record["bytes_moved"], record["bytes_planned"])
        again = self.train(4, self.folder / "run" / "config.toml", run_dir="again")  # it knows its machine
        self.assertIn("per step, proven optimal", again.stdout)
        self.assertEqual(self.losses("again"), self.losses())
        few = self.folder / "few.toml"
        few.write_text((INPUTS / "machines" / "laptop.toml").read_text().replace("[[link]]", "[[link]]\nranks = 2", 1))
        refused = self.train(4, model, "--machine", few, *arguments[2:], expect=2)
        self.assertIn("ranks: got 4 expected at most 2", refused.stderr)

    def test_memory_is_limited(self):
        model = self.model()
        self.train(4, model, run_dir="free")
        needed = self.summary("free")["peak_memory"]
        done = self.train(4, model, "--set", f"parallel.memory={needed}")  # what it takes is enough
        self.assertEqual(self.losses(), self.losses("free"))
        done = self.train(4, model, "--set", f"parallel.memory={needed - 1}", run_dir="less")
        self.assertLess(self.summary("less")["peak_memory"], needed)
        nothing_else = ("--strategy", "data", "--set", "train.microbatches=1", "--set", "train.recompute=none")
        self.train(4, model, *nothing_else, run_dir="data")
        for limit in (self.summary("data")["peak_memory"] - 1, 1000):
            done = self.train(4, model, *nothing_else, "--set", f"parallel.memory={limit}", run_dir=f"at_{limit}", expect=2)
            self.assertEqual(done.stderr.count("soybean_train:"), 1, done.stderr)
            self.assertRegex(done.stderr, r"parallel.memory, got .*B for a rank expected at least ")
            self.assertFalse((self.folder / f"at_{limit}").exists())

    def test_memory_and_bytes_are_as_predicted(self):
        for model in ("digits", "alexnet_small", "resnet18_small"):
            for ranks in (1, 2, 4):
                with self.subTest(model=model, ranks=ranks):
                    self.train(ranks, INPUTS / f"{model}.toml", "--set", "train.steps=2", "--set", "checkpoint.keep=0")
                    done = self.run_program(0, INPUTS / f"{model}.toml", "--ranks", ranks, "--json", program="soybean_plan")
                    plan, summary = json.loads(done.stdout)["strategies"]["auto"], self.summary()
                    self.assertEqual(plan["bytes"], summary["bytes_moved_per_step"])
                    # Planning knows nothing of kernels' scratch.
                    self.assertLessEqual(plan["peak_memory"], summary["peak_memory"])
                    self.assertGreater(plan["peak_memory"], 0.95 * summary["peak_memory"])

    def test_an_earlier_run_is_moved_aside(self):
        self.train(1, self.model(), "--set", "train.steps=2")
        done = self.train(1, self.folder / "tiny.toml", "--set", "train.steps=3")
        self.assertIn("run/earlier-1", done.stdout)
        self.assertEqual(len(self.losses("run/earlier-1")), 2)
        self.assertEqual(len(self.losses("run")), 3)

    def test_a_linked_run_folder_stays_a_link(self):
        (self.folder / "disk").mkdir()
        (self.folder / "run").symlink_to("disk")
        for _ in range(2):
            self.train(1, self.model(), "--set", "train.steps=2")
        self.assertTrue((self.folder / "run").is_symlink())
        self.assertEqual(len(self.losses("disk")), 2)

    def test_batch_smaller_than_the_rank_count(self):
        model = self.model()
        small = ("--set", "data.batch=3", "--set", "train.steps=6")
        self.train(1, model, *small, run_dir="serial")
        for strategy in STRATEGIES:
            with self.subTest(strategy=strategy):
                self.train(8, model, *small, "--strategy", strategy)
                self.assert_close(self.losses(), self.losses("serial"), 1e-9, strategy)

    def test_a_single_sample(self):
        model = self.model()
        single = ("--set", "data.samples=1", "--set", "data.validation_samples=1", "--set", "data.batch=1",
                  "--set", "train.steps=4")
        self.train(1, model, *single, run_dir="serial")
        for ranks in (2, 3):
            self.train(ranks, model, *single)
            self.assert_close(self.losses(), self.losses("serial"), 1e-9, f"{ranks} ranks")

    def test_a_step_takes_the_time_of_its_parts_reading_included(self):
        self.train(1, self.model(), "--set", "data.prefetch=0")
        for record in self.metrics():
            parts = [record[f"{part}_seconds"] for part in ("reading", "computing", "waiting")]
            self.assertGreater(parts[0], 0)
            self.assertGreaterEqual(record["seconds"], sum(parts))
            self.assertLessEqual(record["samples_per_second"] * sum(parts), 1.001 * 12)  # samples of a batch

    def test_single_precision_starts_from_the_same_weights(self):
        model = self.model()
        fp32 = ("--set", "train.precision=fp32", "--set", "train.steps=1", "--set", "train.optimizer.lr=1e-30",
                "--set", "train.optimizer.weight_decay=0")
        self.train(1, model, *fp32, run_dir="serial")
        self.train(5, model, *fp32, "--strategy", "model")
        serial = tensors(self.folder / "serial" / "checkpoints" / "latest.h5")
        parallel = tensors(self.folder / "run" / "checkpoints" / "latest.h5")
        for name in serial:
            if name.startswith("parameters"):
                self.assertTrue((serial[name] == parallel[name]).all(), name)

    def test_the_table_of_a_plan_says_whose_shapes_it_shows(self):
        model = self.model()
        said = "shapes are those of a microbatch, one of the 3 that a batch is worked off in; bytes those of a step"
        for program, options in (("soybean_train", ["--dry-run"]), ("soybean_plan", ["--ranks", 2])):
            done = self.run_program(0, model, *options, "--set", "train.microbatches=3", program=program)
            self.assertIn("4x16", done.stdout)  # of 12
            self.assertIn(said, done.stdout)
            self.assertNotIn("microbatch", self.run_program(0, model, *options, program=program).stdout)

    def test_a_warm_up_as_long_as_the_run_is_advised_against(self):
        model = self.model()
        for steps, advised in ((11, False), (12, True)):
            done = self.train(2, model, "--set", f"train.schedule.warmup_steps={steps}")
            self.assertEqual("advice: the warm-up takes 12 steps, all 12 of the run" in done.stdout, advised)
        self.assertIn("; validation accuracy ", done.stdout)

    def test_verify_passes_and_names_tensors(self):
        model = self.model()
        for precision in ("fp32", "fp64"):
            done = self.run_program(3, model, "--verify", "--set", f"train.precision={precision}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("conv2d_1.weight", done.stdout)

    def test_verify_takes_a_plan_file_in_both_precisions(self):
        model = self.model()
        plan = self.folder / "plan.json"
        made = self.run_program(0, model, "--ranks", "3", "--plan-out", plan, program="soybean_plan")
        self.assertEqual(made.returncode, 0, made.stderr)
        done = self.run_program(3, model, "--verify", "--set", f"parallel.plan='{plan}'")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("verify: passed", done.stdout)

    def test_the_two_communication_back_ends_agree(self):
        model = self.model()
        self.train(4, model, run_dir="own")
        self.train(4, model, "--set", "parallel.comm=mpi_library", run_dir="library")
        self.assert_close(self.losses("library"), self.losses("own"), 1e-9, "mpi_library")


if __name__ == "__main__":
    unittest.main(verbosity=2)
