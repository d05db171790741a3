"""soybean_plan: the paper's networks at full size against exact optima of an independent search, JSON, errors."""
import csv
import io
import json
import unittest

from support import INPUTS, STRATEGIES, TINY, Case

# network, batch, ranks, most MB moved under auto, MB moved under data (exactly 2 (P-1) |W|)
FIGURES = (
    ("alexnet", 256, 2, 48.01, 488.72),
    ("alexnet", 256, 4, 121.23, 1466.17),
    ("alexnet", 256, 8, 244.55, 3421.07),
    ("vgg16", 64, 8, 789.33, 7747.27),
    ("mlp4", 512, 8, 402.76, 15032.39),
)


class Plan(Case):
    def plan(self, *arguments, expect=0):
        done = self.run_program(0, *arguments, program="soybean_plan")
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def json_of(self, *arguments):
        return json.loads(self.plan(*arguments, "--json").stdout)

    def test_bytes_of_the_papers_networks(self):
        for name, batch, ranks, auto, data in FIGURES:
            with self.subTest(network=name, ranks=ranks):
                report = self.json_of(INPUTS / f"{name}.toml", "--ranks", ranks, "--set", "model.bias=false",
                                      "--set", f"data.batch={batch}")
                found = {s: report["strategies"][s]["bytes"] / 1e6 for s in STRATEGIES}
                self.assertLessEqual(round(found["auto"], 2), auto)
                self.assertEqual(round(found["data"], 2), data)
                self.assertEqual(report["strategies"]["auto"]["status"], "optimal")
                for other in STRATEGIES:
                    self.assertLessEqual(found["auto"], found[other], other)

    def test_json_has_the_agreed_keys(self):
        report = self.json_of(INPUTS / "digits.toml", "--ranks", 3)
        self.assertEqual(list(report), ["model", "ranks", "batch", "objective", "planning_seconds", "microbatches", "recompute",
                                       "strategies", "tensors"])
        self.assertEqual(list(report["strategies"]["auto"]), ["bytes", "seconds", "peak_memory", "status", "gap"])
        self.assertEqual(list(report["tensors"][0]), ["name", "shape", "role", "tiling", "bytes"])
        self.assertEqual(sum(t["bytes"] for t in report["tensors"]), report["strategies"]["auto"]["bytes"])

    def test_every_rank_count(self):
        for ranks in (1, 2, 3, 5, 7, 11, 12, 16):
            with self.subTest(ranks):
                report = self.json_of(INPUTS / "digits_mlp.toml", "--ranks", ranks)
                bytes_of = {s: report["strategies"][s]["bytes"] for s in STRATEGIES}
                self.assertEqual(min(bytes_of.values()), bytes_of["auto"])

    def test_step_times_on_a_machine(self):
        alexnet = INPUTS / "alexnet.toml"
        arguments = (alexnet, "--ranks", 8, "--machine", "p2.8xlarge", "--set", "data.batch=256")
        report = self.json_of(*arguments)
        self.assertEqual(report["machine"], "p2.8xlarge, 8 GK210")
        time = report["time"]
        self.assertEqual(time["seconds"], report["strategies"]["auto"]["seconds"])
        self.assertAlmostEqual(time["samples_per_second"] * time["seconds"], 256)
        parts = sum(time[part] for part in ("forward", "backward", "update", "packing", "reading", "waiting"))
        self.assertAlmostEqual(parts, time["seconds"])
        self.assertAlmostEqual(report["strategies"]["data"]["seconds"] / time["seconds"], time["speedup_over_data"])
        self.assertGreater(time["speedup_over_data"], 1.5)  # the paper's range is 1.5 to 4
        self.assertLess(time["speedup_over_data"], 4)
        text = self.plan(*arguments, "--compare").stdout
        self.assertIn(f"{1e3 * time['seconds']:.3f} ms", text)
        self.assertIn(f"predicted on p2.8xlarge, 8 GK210: {1e3 * time['seconds']:.2f} ms per step", text)

    def test_plans_for_time(self):
        """Under objective "time" no strategy is faster, nor is the plan of fewest bytes."""
        for model, ranks, machine in (("alexnet", 8, "p2.8xlarge"), ("vgg16", 16, "ethernet-16"), ("mlp4", 6, "laptop")):
            with self.subTest(model=model):
                arguments = (INPUTS / f"{model}.toml", "--ranks", ranks, "--machine", machine)
                fewest = self.json_of(*arguments)
                fastest = self.json_of(*arguments, "--set", "parallel.objective=time")
                self.assertEqual((fewest["objective"], fastest["objective"]), ("bytes", "time"))
                seconds = {s: entry["seconds"] for s, entry in fastest["strategies"].items()}
                # The search counts every node by itself; what is fused afterwards takes a little less.
                self.assertLess(seconds["auto"], 1.02 * min(seconds.values()))
                self.assertLess(seconds["auto"], 1.02 * fewest["strategies"]["auto"]["seconds"])
                self.assertLessEqual(fewest["strategies"]["auto"]["bytes"], fastest["strategies"]["auto"]["bytes"])
                self.assertLess(fastest["strategies"]["auto"]["gap"], 0.02)
                text = self.plan(*arguments, "--set", "parallel.objective=time").stdout.splitlines()[0]
                self.assertRegex(text, r"MB moved, [0-9.]+ m?s per step, .*; data [0-9.]+ m?s \([0-9.]+ times\)")

    def test_a_model_file_names_its_machine(self):
        (self.folder / "here.toml").write_text((INPUTS / "machines" / "p3.16xlarge.toml").read_text())
        for name in ("p3.16xlarge", "./here.toml"):
            model = self.model()
            model.write_text(model.read_text() + f'\n[parallel]\nobjective = "time"\n[machine]\nfile = "{name}"\n')
            report = self.json_of(model, "--ranks", 2)
            self.assertEqual((report["objective"], report["machine"]), ("time", "p3.16xlarge, 8 V100"))

    def test_what_does_not_fit_a_machine_is_said(self):
        for batch, fits in ((256, True), (65536, False)):
            text = self.plan(INPUTS / "alexnet.toml", "--ranks", 8, "--machine", "p2.8xlarge", "--set",
                             f"data.batch={batch}").stdout
            self.assertRegex(text, r"buffers of the fullest rank take [0-9.]+ MB of the machine's 11500\.00 MB"
                             + (r"\n" if fits else ": they do not fit"))

    def test_slower_links_take_longer(self):
        model, machine = self.model(), INPUTS / "machines" / "p2.8xlarge.toml"
        slow = self.folder / "slow.toml"
        slow.write_text(machine.read_text().replace("bandwidth = 10e9", "bandwidth = 1e9"))
        times = [self.json_of(model, "--ranks", 8, "--machine", file)["time"] for file in (machine, slow)]
        self.assertLess(times[0]["waiting"], times[1]["waiting"])
        self.assertEqual(times[0]["forward"], times[1]["forward"])

    def test_sweep_over_rank_counts(self):
        arguments = (INPUTS / "mlp4.toml", "--sweep", "1..8", "--machine", "p3.16xlarge")
        rows = list(csv.DictReader(io.StringIO(self.plan(*arguments, "--csv").stdout)))
        self.assertEqual([int(row["ranks"]) for row in rows], [1, 2, 4, 8])
        self.assertEqual({row["batch"] for row in rows}, {rows[0]["batch"]})
        for row in rows:
            self.assertLessEqual(int(row["bytes"]), min(int(row["data_bytes"]), int(row["model_bytes"])))
            report = self.json_of(INPUTS / "mlp4.toml", "--ranks", row["ranks"], "--machine", "p3.16xlarge")
            self.assertAlmostEqual(float(row["seconds"]), report["time"]["seconds"], delta=1e-5 * float(row["seconds"]))
            for strategy in ("data", "model"):
                self.assertEqual(int(row[f"{strategy}_bytes"]), report["strategies"][strategy]["bytes"])
                self.assertAlmostEqual(float(row[f"{strategy}_seconds"]), report["strategies"][strategy]["seconds"],
                                       delta=1e-5 * float(row[f"{strategy}_seconds"]))
        weak = list(csv.DictReader(io.StringIO(self.plan(*arguments, "--csv", "--weak").stdout)))
        self.assertEqual([int(row["batch"]) for row in weak], [n * int(rows[0]["batch"]) for n in (1, 2, 4, 8)])
        self.assertEqual(len(self.plan(*arguments).stdout.splitlines()), 6)
        renamed = self.plan(*("--simulate" if a == "--sweep" else a for a in arguments), "--csv").stdout
        without = lambda text: [line.rpartition(",")[0] for line in text.splitlines()]  # planning takes what it takes
        self.assertEqual(without(renamed), without(self.plan(*arguments, "--csv").stdout))

    def test_sweep_needs_no_machine(self):
        model = self.model()
        rows = list(csv.DictReader(io.StringIO(self.plan(model, "--sweep", "1,2,3,6", "--csv").stdout)))
        self.assertEqual([(row["ranks"], row["seconds"], row["speedup"]) for row in rows],
                         [("1", "", ""), ("2", "", ""), ("3", "", ""), ("6", "", "")])
        for row in rows:
            report = self.json_of(model, "--ranks", row["ranks"])["strategies"]
            self.assertEqual([int(row[f"{p}bytes"]) for p in ("", "data_", "model_")],
                             [report[s]["bytes"] for s in ("auto", "data", "model")])
        text = self.plan(model, "--sweep", "1..4").stdout.splitlines()
        self.assertEqual(text[0], "tiny: moved per step, the batch stays as it is")
        self.assertEqual(len(text), 5)

    def test_compare_says_why(self):
        text = self.plan(INPUTS / "alexnet.toml", "--ranks", 8, "--compare", "--set", "model.bias=false", "--set",
                         "data.batch=256").stdout
        lines = text.splitlines()
        self.assertLessEqual(max(map(len, lines[1:])), 120, "too wide to read")
        row = lambda name: next(line for line in lines if line.split()[:1] == [name])
        self.assertRegex(row("conv2"), r"data +batch/8 +activations outweigh weights \d+:1 ")
        self.assertRegex(row("fc6"), r"model +\S.* weights outweigh activations \d+:1 ")
        for strategy in STRATEGIES:
            self.assertRegex(row(strategy), rf"{strategy} +[0-9.]+ MB +[0-9.]+ +[0-9.]+ MB +\S+ \d+ %")
        timed = self.plan(INPUTS / "alexnet.toml", "--ranks", 8, "--compare", "--machine", "p2.8xlarge").stdout
        self.assertIn("waiting for PCIe", timed)

    def test_why(self):
        arguments = (INPUTS / "alexnet.toml", "--ranks", 8, "--set", "model.bias=false", "--set", "data.batch=256")
        text = self.plan(*arguments, "--why", "fc6").stdout
        bytes_of = self.json_of(*arguments)["strategies"]["auto"]["bytes"]
        self.assertRegex(text, rf"(?m)^  >  \S.* model +{bytes_of / 1e6:.2f} MB +planned")
        self.assertRegex(text, r"(?m)^ +batch/8 +data +[0-9.]+ MB +\+ [0-9.]+ MB")
        self.assertNotIn("step time", text)
        self.assertIn("where its bytes go", text)
        self.assertIn("step time", self.plan(*arguments, "--why", "conv1", "--machine", "p2.8xlarge").stdout)
        self.assertIn("none of its tensors moves", self.plan(self.model(), "--ranks", 2, "--why", "dropout_1", "--strategy",
                                                             "data").stdout)

    def test_plan_files_are_compared(self):
        model = self.model()
        for strategy, ranks in (("data", 4), ("model", 4), ("auto", 2)):
            self.plan(model, "--ranks", ranks, "--strategy", strategy, "--plan-out", f"{strategy}.json")
        text = self.plan(model, "--diff", "data.json", "model.json").stdout
        data, other = (self.json_of(model, "--ranks", 4)["strategies"][s]["bytes"] for s in ("data", "model"))
        self.assertIn("tiny on 4 ranks (mesh 2x2)", text)
        self.assertRegex(text, rf"  total +{data / 1e3:.2f} kB +{other / 1e3:.2f} kB")
        self.assertRegex(text, r"dense_1\.weight\.grad +dense_1 +replicate/4 ")
        self.assertIn("the plans are the same", self.plan(model, "--diff", "data.json", "data.json").stdout)

        def refuse(words, *arguments):
            error = self.plan(*arguments, expect=2).stderr
            self.assertEqual(len(error.strip().splitlines()), 1, error)
            self.assertIn(words, error)

        refuse("--diff: plans to compare, got meshes 2x2 in data.json and 2 in auto.json expected the same one", model,
               "--diff", "data.json", "auto.json")
        wider = self.model(TINY.replace("units = 16", "units = 18"), "wider.toml")
        self.plan(wider, "--ranks", 4, "--plan-out", "wider.json")
        refuse('wider.json: key "shapes" of the plan, got ', model, "--diff", "data.json", "wider.json")
        deeper = self.model(TINY.replace('{ op = "dense", units = 5 }', '{ op = "dense", units = 6 }, { op = "dense", units = 5 }'),
                            "deeper.toml")
        self.plan(deeper, "--ranks", 4, "--plan-out", "deeper.json")
        refuse('deeper.json: key "model" of the plan, got ', model, "--diff", "deeper.json", "data.json")
        refuse("none.json: file, got nothing expected a readable file", model, "--diff", "data.json", "none.json")
        whole = (self.folder / "data.json").read_text()
        (self.folder / "cut.json").write_text(whole[: len(whole) // 2])
        refuse("cut.json: JSON text, got something else", model, "--diff", "data.json", "cut.json")
        (self.folder / "edited.json").write_text(whole.replace('"dense_1.weight": "replicate,replicate"',
                                                               '"dense_1.weight": "split(7),replicate"'))
        refuse("edited.json: tensor \"dense_1.weight\" of layer 'dense_1'", model, "--diff", "data.json", "edited.json")

    def test_pages_need_a_place(self):
        error = self.plan(self.model(), "--ranks", 2, "--sweep", "1", "--report", "none/plan.html", expect=2).stderr
        self.assertIn("--report: file to write, got none/plan.html expected a writable path", error)

    def test_errors(self):
        model = self.model()
        for arguments, words in (
            ((), ["command line: model, got nothing expected a model file (TOML)"]),
            ((model,), ["command line: --ranks, got nothing expected the number of ranks to plan for"]),
            ((model, "--rank", 4), ['command line: option, got "--rank" expected a known one. did you mean --ranks?']),
            ((model, "--ranks"), ["--ranks: got nothing expected N"]),
            ((model, "--ranks", 0), ['--ranks: got "0" expected a whole number from 1 to 1048576']),
            ((model, "--ranks", -1), ['--ranks: got "-1" expected a whole number from 1 to 1048576']),
            ((model, "--ranks", "many"), ['--ranks: got "many" expected a whole number from 1 to 1048576']),
            ((model, "--ranks", 1 << 21), ['--ranks: got "2097152" expected a whole number from 1 to 1048576']),
            ((model, "--ranks", 4, "--json=maybe"), ["--json: got a value expected none"]),
            ((model, "--ranks", 4, "--strategy", "dta"), ["dta"]),
            ((model, "--ranks", 4, "--machine", "m.toml"), ["m.toml: file, got nothing expected a readable file"]),
            ((model, "--ranks", 4, "--machine", "dgx-h1000"), ['machine.file, got "dgx-h1000" expected a file or the name of a '
                                                               'machine (dgx-a100, dgx-h100, ', 'did you mean "dgx-h100"?']),
            ((model, "--ranks", 64, "--machine", "ethernet-16"), ["ranks: got 64 expected at most 32, the ranks of machine"]),
            ((model, "--ranks", 4, "--machine", "laptop", "--set", "train.precision=tf32"),
             ["laptop.toml: processor, got no rates for tf32 expected a table [processor.tf32]"]),
            ((model, "--ranks", 4, "--weak"), ["--weak: got it expected --sweep with it"]),
            ((model, "--ranks", 4, "--csv"), ["--csv: got it expected --sweep with it"]),
            ((model, "--sweep", "1..4", "--ranks", 4), ["--sweep: got --ranks as well expected only one of them"]),
            ((model, "--sweep", "1..4", "--why", "dense_1"), ["--sweep: got --why as well expected only one of them"]),
            ((model, "--sweep", "4,2"), ['--sweep: got "4,2" expected rank counts']),
            ((model, "--sweep", "1..64", "--machine", "ethernet-16"), ["ranks: got 64 expected at most 32"]),
            ((model, "--ranks", 4, "--why", "dens_1"), ['--why: name of a layer, got "dens_1" expected one of tiny. did you '
                                                        'mean "dense_1"?']),
            ((model, "--ranks", 4, "--why", "dense_1", "--json"), ["--why: got --json as well expected only one of them"]),
            ((model, "--ranks", 4, "--why"), ["--why: got nothing expected LAYER"]),
            ((model, "--diff", "a.json"), ["--diff: got 1 expected FILE, 2 of them"]),
            ((model, "--diff", "a.json", "b.json", "--ranks", 4), ["--diff: got --ranks as well expected only one of them"]),
            ((model, "--ranks", 4, "--report", "p.html", "--json"), ["--report: got --json as well expected only one of them"]),
            ((model, "--ranks", 4, "--report", "p.html", "--csv"), ["--csv: got it expected --sweep with it"]),
            ((self.folder / "none.toml", "--ranks", 4), ["none.toml"]),
        ):
            with self.subTest(str(arguments[1:])):
                done = self.plan(*arguments, expect=2)
                lines = done.stderr.strip().splitlines()
                self.assertEqual(len(lines), 1, done.stderr)
                for word in words:
                    self.assertIn(word, lines[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
