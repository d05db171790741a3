"""scripts/gpu_check with programs on stand-ins: what it runs, what it says and how it ends."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from support import BIN, ROOT, Case  # noqa: E402

PROGRAMS = pathlib.Path(os.environ["SOYBEAN_STANDIN_PROGRAMS"])  # folder of soybean_train_standin
NAMES = {"soybean_train": PROGRAMS / "soybean_train_standin", "gpu_ops": BIN / "cuda_ops",
         "gpu_executor": BIN / "cuda_executor", "gpu_vendor": BIN / "cuda_check"}


class GpuCheck(Case):
    def setUp(self):
        super().setUp()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        for name, program in NAMES.items():
            (self.bin / name).symlink_to(program)
        (self.bin / "mpirun").symlink_to(ROOT / "scripts" / "mpirun")
        self.golden = self.folder / "losses.json"

    def check(self, *arguments, programs=None, **environment):
        command = [sys.executable, str(ROOT / "scripts" / "gpu_check"), "--bin", str(programs or self.bin), "--golden",
                   str(self.golden), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=self.folder,
                              env=dict(os.environ, **environment))

    def record(self, steps, change=1.0):
        """Losses of the host's trainer."""
        host = self.folder / "host"
        host.mkdir()
        for program in (BIN / "soybean_train", ROOT / "scripts" / "mpirun"):
            (host / program.name).symlink_to(program)
        done = self.check("--record", self.golden, "--models", "digits", programs=host)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        golden = json.loads(self.golden.read_text())
        golden["digits"]["losses"] = [loss * change for loss in golden["digits"]["losses"][:steps]]
        self.golden.write_text(json.dumps(golden))

    def test_what_holds_is_reported_in_words_and_as_json(self):
        self.record(2)
        out = self.folder / "out.json"
        done = self.check("--only", "operators,redistributions,digits", "--json", out)
        self.assertIn("1, 2, 4 ranks sharing a GPU", done.stdout)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
        for name in ("operators", "redistributions", "digits"):
            self.assertIn(" ok ", lines[name], done.stdout)
        self.assertEqual([check["result"] for check in json.loads(out.read_text())["checks"]], ["ok"] * 3)

    def test_losses_that_differ_fail(self):
        self.record(1, change=1.01)
        done = self.check("--only", "digits")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("FAILED", done.stdout)
        self.assertIn("losses differ from the CPU's by 9.9e-03", done.stdout)

    def test_calls_of_the_libraries_are_counted(self):
        (self.bin / "gpu_vendor").unlink()
        (self.bin / "gpu_vendor").symlink_to(BIN / "cuda_vendor")
        done = self.check("--only", "vendor")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"vendor +ok .* 1 × Stand-in .*; \d{3} calls of the libraries\n")

    def test_programs_that_fail_are_quoted(self):
        (self.bin / "gpu_ops").unlink()
        (self.bin / "gpu_ops").write_text("#!/bin/sh\necho something went wrong >&2\nexit 3\n")
        (self.bin / "gpu_ops").chmod(0o755)
        done = self.check("--only", "operators")
        self.assertEqual(done.returncode, 1)
        self.assertIn("gpu_ops ended with 3", done.stdout)
        self.assertIn("something went wrong", done.stdout)

    def test_losses_that_nobody_recorded_are_skipped(self):
        self.golden.write_text("{}")
        done = self.check("--only", "digits")
        self.assertEqual(done.returncode, 1)  # nothing held
        self.assertIn("has no losses of digits", done.stdout)

    def test_a_recording_that_fails_says_why(self):
        (self.bin / "soybean_train").unlink()
        (self.bin / "soybean_train").write_text("#!/bin/sh\necho no such thing >&2\nexit 2\n")
        (self.bin / "soybean_train").chmod(0o755)
        done = self.check("--record", self.golden, "--models", "digits")
        self.assertEqual(done.returncode, 1)
        self.assertIn("gpu_check: --record: soybean_train ended with 2", done.stderr)
        self.assertFalse(self.golden.exists())

    def test_a_peer_that_misbehaves_is_no_peer(self):
        """PyTorch's figures are an extra: without python3, or with one that prints nonsense, all else is reported."""
        for name, text in (("soybean_kernels", 'echo \'{"step_seconds": 0.5, "kernels": [{"op": "dense+bias", "layer": '
                            '"fc", "seconds": 0.1, "flops": 1e9, "bytes": 1e6}]}\'\n'), ("python", "echo nonsense\n")):
            (self.bin / name).write_text("#!/bin/sh\n" + text)
            (self.bin / name).chmod(0o755)
        for python in (self.bin / "python", self.folder / "missing"):
            out = self.folder / "out.json"
            done = self.check("--only", "speed-alexnet", "--json", out, SOYBEAN_PYTHON=str(python))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("fp32 512 samples/s", done.stdout)
            self.assertIn("dense+bias fc", done.stdout)
            self.assertNotIn("pytorch", json.loads(out.read_text())["figures"]["alexnet fp32"])

    def test_memcheck_runs_when_asked_for(self):
        (self.bin / "compute-sanitizer").write_text('#!/bin/sh\necho "$@" >%s/args\nexit 9\n' % self.folder)
        (self.bin / "compute-sanitizer").chmod(0o755)
        done = self.check("--only", "memcheck", PATH=f"{self.bin}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ended with 9", done.stdout)
        self.assertIn(f"--tool memcheck --error-exitcode 9 {self.bin}/gpu_ops", (self.folder / "args").read_text())

    def test_a_node_without_a_gpu_is_told_so(self):
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no GPU or no driver here", done.stdout)
        self.assertIn("nothing else can run without a GPU", done.stderr)

    def test_what_can_not_start_says_why(self):
        done = self.check(programs=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cmake --preset cuda", done.stderr)
        done = self.check("--only", "operator")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no check operator", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
