"""The page of soybean_plan --report: drawn in headless Chromium where there is one, without errors and with all it should say."""
import html
import json
import re
import shutil
import subprocess
import unittest

from support import INPUTS, TINY, Case

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Page(Case):
    def page(self, model, *arguments, name="plan.html"):
        done = self.run_program(0, model, *arguments, "--report", name, program="soybean_plan")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"wrote {name}", done.stdout)
        return self.folder / name

    def data(self, page):
        text = page.read_text()
        return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])

    def plan_file(self):
        done = self.run_program(0, self.model(), "--ranks", 4, "--plan-out", "four.json", program="soybean_plan")
        self.assertEqual(done.returncode, 0, done.stderr)

    def browse(self, page, *arguments):
        profile = self.folder / "profile"
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
             "--enable-logging=stderr", "--v=0", "--virtual-time-budget=4000", *arguments, page.as_uri()],
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
        self.assertEqual(console, [], "the page complains")
        return done.stdout

    def text(self, dom):
        """What the drawn page says, without its scripts and styles."""
        body = re.sub(r"<(script|style)\b.*?</\1>", "", dom, flags=re.DOTALL)
        return html.unescape(re.sub(r"<[^>]*>", "\n", body))

    def test_carries_its_data(self):
        page = self.page(self.model(), "--ranks", 4, "--machine", "laptop", "--sweep", "1..4")
        data = self.data(page)
        report = json.loads(self.run_program(0, "tiny.toml", "--ranks", 4, "--machine", "laptop", "--json",
                                             program="soybean_plan").stdout)
        for strategy in data["strategies"]:
            other = report["strategies"][strategy["name"]]
            self.assertEqual((strategy["bytes"], strategy["seconds"], strategy["memory"]),
                             (other["bytes"], other["seconds"], other["peak_memory"]))
        moved = sum(layer["inside"] for layer in data["layers"]) + sum(e["forward"] + e["backward"] for e in data["edges"])
        self.assertEqual(moved, report["strategies"]["auto"]["bytes"])
        self.assertEqual([point["ranks"] for point in data["sweep"]], [1, 2, 4])
        ends = [max(event[1] for event in data["timeline"][track]) for track in ("kernels", "transfers")]
        self.assertAlmostEqual(max(ends), data["timeline"]["seconds"])

    def test_the_sweep_goes_to_the_plans_ranks_or_where_it_is_told(self):
        ranks = lambda *arguments: [p["ranks"] for p in self.data(self.page(self.model(), *arguments))["sweep"]]
        self.assertEqual(ranks("--ranks", 6), [1, 2, 4, 6])
        self.assertEqual(ranks("--ranks", 4, "--set", 'parallel.pins={ "dense_1.weight" = "replicate,replicate" }'), [4])
        self.plan_file()
        self.assertEqual(ranks("--ranks", 4, "--set", "parallel.plan=four.json"), [4])
        self.assertEqual(ranks("--ranks", 2, "--sweep", "1,3", "--machine", "ethernet-16"), [1, 3])
        done = self.run_program(0, "tiny.toml", "--ranks", 2, "--sweep", "1..64", "--machine", "ethernet-16", "--report", "no.html",
                                program="soybean_plan")
        self.assertEqual((done.returncode, (self.folder / "no.html").exists()), (2, False))
        self.assertIn("ranks: got 64 expected at most 32", done.stderr)

    @unittest.skipUnless(BROWSER, "no chromium here: scripts/install_packages --browser installs it")
    def test_is_drawn(self):
        page = self.page(INPUTS / "alexnet.toml", "--ranks", 8, "--machine", "p2.8xlarge")
        text = self.text(self.browse(page, "--dump-dom"))
        for words in ("How alexnet is split", "8 ranks (mesh 2x2x2)", "Strategies side by side", "proven optimal", "fc6",
                      "The network, layer by layer", "outweigh", "Memory of the fullest rank over the step",
                      "Time of one step on p2.8xlarge, 8 GK210", "Over rank counts", "speed-up over data"):
            self.assertIn(words, text)
        for wrong in ("undefined", "NaN", "[object"):
            self.assertNotIn(wrong, text)
        from PIL import Image, ImageStat

        brightness = {}
        for scheme, arguments in (("light", ()), ("dark", ("--blink-settings=preferredColorScheme=0",))):
            self.browse(page, f"--screenshot={self.folder / 'page.png'}", "--window-size=1280,2400", *arguments)
            with Image.open(self.folder / "page.png") as picture:
                self.assertEqual(picture.size, (1280, 2400))
                grey = picture.convert("L")
                brightness[scheme] = ImageStat.Stat(grey).mean[0]
                self.assertGreater(ImageStat.Stat(grey).stddev[0], 8, "the picture is empty")
        self.assertGreater(brightness["light"], 200)
        self.assertLess(brightness["dark"], 80)

    @unittest.skipUnless(BROWSER, "no chromium here: scripts/install_packages --browser installs it")
    def test_one_rank_and_no_machine_are_drawn_too(self):
        self.plan_file()
        for ranks, *arguments in ((1,), (6,), (4, "--set", "parallel.plan=four.json", "--strategy", "data")):
            page = self.page(self.model(), "--ranks", ranks, "--sweep", ranks if arguments else "1", *arguments)
            text = self.text(self.browse(page, "--dump-dom"))
            self.assertIn("No machine was given", text)
            self.assertEqual("nothing moves at these rank counts" in text, not arguments)
            for wrong in ("undefined", "NaN", "[object"):
                self.assertNotIn(wrong, text)

    @unittest.skipUnless(BROWSER, "no chromium here: scripts/install_packages --browser installs it")
    def test_names_are_text(self):
        name = '<script>document.title=1</script><img src=x onerror=alert(1)>&"{{css}}</title><h1>'
        machine = (INPUTS / "machines" / "laptop.toml").read_text()  # layers' names have no such characters
        self.model(re.sub(r'(?m)^name *= *".*"', f"name = '{name}'", machine), "evil.toml")
        page = self.page(self.model(), "--ranks", 2, "--machine", "./evil.toml", "--sweep", "1,2")
        dom = self.browse(page, "--dump-dom")
        self.assertIn(name, self.text(dom))
        self.assertNotIn("<img", dom)
        self.assertEqual(dom.count("<h1>"), 1)
        self.assertEqual(len(re.findall(r"<script\b", dom)), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
