"""scripts/bundle: a moved folder of programs that takes nothing from where it was built but what every system has."""
import os
import re
import shutil
import subprocess
import unittest

from support import BIN, ROOT, Case

EVERYWHERE = re.compile(r"^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil|libnsl)\.so")


class Bundle(Case):
    def bundle(self, *arguments, **environment):
        return subprocess.run([str(ROOT / "scripts" / "bundle"), *map(str, arguments)], capture_output=True, text=True,
                              timeout=250, cwd=self.folder, env=dict(os.environ, **environment))

    def test_a_moved_bundle_trains_on_its_own_libraries(self):
        done = self.bundle(BIN.parent, "made")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        shutil.move(self.folder / "made", self.folder / "moved here")
        top = self.folder / "moved here"
        libraries = subprocess.run(["ldd", top / "libexec" / "soybean_train"], capture_output=True, text=True,
                                   env={"LD_LIBRARY_PATH": str(top / "lib"), "PATH": os.environ["PATH"]}).stdout
        for line in libraries.splitlines():
            name = line.split()[0]
            if not EVERYWHERE.match(os.path.basename(name)):
                self.assertIn(str(top / "lib"), line)
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        launcher = [str(top / "bin" / "mpirun"), "-n", "2"] if (top / "bin" / "mpirun").exists() else []
        done = subprocess.run([*launcher, str(top / "bin" / "soybean_train"), str(self.model())], capture_output=True,
                              text=True, env=environment, cwd=self.folder, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("done: ", done.stdout)
        plan = subprocess.run([str(top / "bin" / "soybean_plan"), str(top / "share/soybean/inputs/vgg16.toml"), "--ranks",
                               "8"], capture_output=True, text=True, env=environment, timeout=60)
        self.assertIn("proven optimal", plan.stdout)

    def test_a_library_that_is_missing_is_named_and_nothing_is_left(self):
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "ldd").write_text('#!/bin/sh\n/usr/bin/ldd "$@" | sed "s|\\(libhdf5[^ ]*\\) => .*|\\1 => not found|"\n')
        (tools / "ldd").chmod(0o755)
        done = self.bundle(BIN.parent, "made", PATH=f"{tools}:{os.environ['PATH']}")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"bundle: libhdf5\S*, which soybean_\w+ needs, was not found\. load the modules")
        self.assertFalse((self.folder / "made").exists())

    def test_with_cuda_it_takes_what_cudnn_opens_by_name(self):
        tools, cuda = self.folder / "tools", self.folder / "cuda"
        tools.mkdir()
        cuda.mkdir()
        (tools / "ldd").write_text('#!/bin/sh\n/usr/bin/ldd "$@"\ncase "$1" in *soybean_train)\n'
                                   + "".join(f"  echo '  {name} => {cuda}/{name} (0x0)'\n"
                                             for name in ("libcublasLt.so.13", "libcudnn.so.9")) + "esac\n")
        (tools / "ldd").chmod(0o755)
        named = ["libcudnn_ops.so.9", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0"]
        for name in ("libcublasLt.so.13", "libcudnn.so.9", *named[:2]):
            (cuda / name).touch()
        arguments = ("--with-cuda", BIN.parent, "made")
        done = self.bundle(*arguments, PATH=f"{tools}:{os.environ['PATH']}")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"bundle: \S+/libnvrtc-builtins\.so\S+, which cuDNN opens, was not found\. load the")
        self.assertFalse((self.folder / "made").exists())
        (cuda / named[2]).touch()
        done = self.bundle(*arguments, PATH=f"{tools}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        taken = os.listdir(self.folder / "made" / "lib")
        self.assertTrue(set(named) <= set(taken), taken)

    def test_what_is_there_is_not_overwritten(self):
        (self.folder / "there").mkdir()
        done = self.bundle(BIN.parent, "there")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there, got a folder that is already there expected a new one", done.stderr)
        self.assertEqual(list((self.folder / "there").iterdir()), [])

    def test_what_is_no_build_is_refused(self):
        done = self.bundle(self.folder, "new")
        self.assertEqual(done.returncode, 2)
        self.assertIn("usage", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
