"""Transformers: parallel runs follow the serial one, heads, vocabulary and sequence split; a text is learnt; bad input."""
import unittest

from support import INPUTS, Case, tensors

GPT = f"""
[model]
name = "gpt"
input = [12]
vocabulary = 256
init = "normal"
init_std = 0.1
layers = [
  {{ op = "embedding", name = "wte", embedding_dim = 16 }},
  {{ op = "positional_embedding" }},
  {{ repeat = 2, layers = [
    {{ op = "residual", body = [
      {{ op = "rms_norm" }},
      {{ op = "attention", heads = 4, kv_heads = 2, causal = true, rotary = 100.0 }},
    ] }},
    {{ op = "residual", body = [
      {{ op = "layer_norm" }},
      {{ op = "dense", units = 32, activation = "gelu" }},
      {{ op = "dense", units = 16 }},
    ] }},
  ] }},
  {{ op = "dense", name = "lm_head", tied = "wte", bias = false }},
]
loss = "softmax_cross_entropy"

[data]
source = "tokens"
path = "{INPUTS}/data/gospels.txt"
dtype = "uint8"
validation_path = "valid.bin"
batch = 8

[train]
steps = 20
optimizer = {{ name = "sgd", lr = 0.1, momentum = 0.9, weight_decay = 1e-4 }}
precision = "fp64"
"""


class Transformers(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "valid.bin").write_bytes((INPUTS / "data" / "gospels.txt").read_bytes()[:12 * 13 + 1])

    def test_parallel_runs_follow_the_serial_run(self):
        model = self.model(GPT)
        self.train(1, model, run_dir="serial")
        self.assertLess(self.losses("serial")[-1], 0.9 * self.losses("serial")[0])
        weights = tensors(self.folder / "serial" / "checkpoints" / "latest.h5")
        self.assertNotIn("parameters/lm_head.weight", weights)  # it is wte's
        for ranks, strategy in ((3, "auto"), (3, "data"), (3, "model"), (8, "auto"), (8, "data"), (8, "model"), (4, "auto")):
            with self.subTest(ranks=ranks, strategy=strategy):
                self.train(ranks, model, "--strategy", strategy)
                self.assert_follows("run", "serial", f"{strategy} on {ranks}")

    def test_a_sequence_is_split_where_there_are_fewer_samples_than_ranks(self):
        model = self.model(GPT.replace("batch = 8", "batch = 2"))
        self.train(1, model, run_dir="serial")
        for ranks, pins in ((6, ()), (4, ("--set", 'parallel.pins."attention_1.query"="split(2),split(2)"'))):
            with self.subTest(ranks=ranks):
                self.train(ranks, model, *pins)
                self.assert_follows("run", "serial", f"{ranks} ranks")

    def test_savings_do_not_change_the_losses(self):
        model = self.model(GPT)
        self.train(1, model, run_dir="serial")
        for change in ("train.microbatches=2", "train.recompute=segments", "train.recompute=cheap"):
            with self.subTest(change=change):
                self.train(3, model, "--set", change)
                self.assert_close(self.losses(), self.losses("serial"), 1e-9, change)

    def test_fp32_follows_fp64_at_first(self):
        model = self.model(GPT)
        self.train(1, model, run_dir="serial")
        self.train(2, model, "--set", "train.precision=fp32")
        self.assert_close(self.losses()[:5], self.losses("serial")[:5], 1e-5, "fp32")

    def test_verify_holds(self):
        self.train(4, self.model(GPT), "--verify", "--set", "train.precision=fp32", "--set", "train.steps=2")

    def test_the_text_is_learnt_on_four_ranks(self):
        self.train(4, INPUTS / "gpt2_tiny.toml", "--set", "train.steps=60", "--set", "data.batch=16", "--set",
                   "train.schedule.warmup_steps=10")
        self.assertLess(self.summary()["validation"]["loss"], 2.75)  # of single letters 3.06 at best

    def test_bad_input_is_one_error(self):
        cases = {
            "tokens beyond the vocabulary": (("vocabulary = 256", "vocabulary = 100"),
                                             r"gospels.txt: token 2, got 116 expected 0 to 99"),
            "half a token": (('dtype = "uint8"', 'dtype = "uint16"'), r"gospels.txt: got 447631 bytes expected a multiple of 2"),
            "no vocabulary": (("vocabulary = 256\n", ""), r"gpt.toml:\d+: layer 'wte' \(embedding\): input, got numbers"),
            "heads": (("heads = 4, kv_heads = 2", "heads = 3"), r"gpt.toml:\d+: .*heads, got 3 with 16 features"),
            "kv_heads": (("kv_heads = 2", "kv_heads = 3"), r"gpt.toml:\d+: .*kv_heads, got 3 .*a divisor of heads, 4"),
            "tied to nothing": (('tied = "wte"', 'tied = "wtf"'), r"layer 'lm_head' \(dense\): tied, got 'wtf'"),
            "no such file": (("gospels.txt", "nothing.txt"), "nothing.txt"),
            "one label per sample": (('{ op = "dense", name = "lm_head", tied = "wte", bias = false },',
                                      '{ op = "flatten" }, { op = "dense", units = 9 },'),
                                     "expected one per position of a sequence of tokens, 12"),
            "numbers": (('source = "tokens"', 'source = "npy"'), "data."),
        }
        for what, ((old, new), pattern) in cases.items():
            with self.subTest(what):
                self.assertIn(old, GPT)
                done = self.run_program(2, self.model(GPT.replace(old, new), "gpt.toml"))
                said = done.stdout + done.stderr
                errors = [line for line in said.splitlines() if line.startswith("soybean_train:")]
                self.assertEqual(done.returncode, 2, said)
                self.assertEqual(len(errors), 1, said)
                self.assertRegex(errors[0], pattern)


if __name__ == "__main__":
    unittest.main(verbosity=2)
