#!/usr/bin/env python3
"""Times whole models as people call them from PyTorch: `generate` of transformers, eagerly and
compiled, the same model after `untax.torch.parallelize`, and `untax.torch.Decoder`. A process for
each GPU:

    torchrun --standalone --nproc-per-node 1 bench/torch_models.py --model llama-3.1-8b --json FILE
    torchrun --standalone --nproc-per-node 2 bench/torch_models.py --model qwen3-32b --prompt 512
    torchrun --standalone --nproc-per-node 1 bench/torch_models.py --layers 4 --ways transformers untax
    torchrun --standalone --nproc-per-node 1 bench/torch_models.py --layers 8 --draw 6 --seed 17
    torchrun --standalone --nproc-per-node 2 bench/torch_models.py --device cpu --model llama-3.2-1b \
        --layers 1 --prompt 8 --tokens 4

Weights are random, and no token ends a sequence. The time to the first token is that of
`max_new_tokens=1`; a token after it takes the rest of the time of 1 + --tokens tokens, over their
number. Each figure is the median of --repeat calls behind warm-up calls, of the slowest rank. With
several ranks transformers runs its own tensor parallelism, `tp_plan="auto"`. Its ways and that of
untax.torch.parallelize have the same weights, so their first tokens should be the same; later ones
need not be, once two logits are about as large. With --draw the numbers of sequences and the lengths
of prompts are drawn at random, log-uniformly, from what --sequences and --prompt span. For untax.torch.parallelize each GPU holds the
whole model at first. NVLink multicast stays off as in bench/torch_layers.py.
"""
import argparse
import gc
import json
import os
import random
import tempfile
import textwrap
from math import exp, log
from pathlib import Path
from statistics import median

from layers.timing import Timer, first_fault, without_multicast, worst

without_multicast()

import torch
import torch.distributed as dist
import transformers
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.distributed import DistributedConfig
from transformers.initialization import no_tie_weights

import untax
import untax.torch
from layers import models, record

WARM_UP = 2  # a call compiles or captures, and the next one is as later ones are
WIDTH = 100


class Skipped(Exception):
    """A way that this machine does not have."""


def spread(seconds):
    return {"median": median(seconds), "least": min(seconds), "most": max(seconds)}


def milliseconds(figure):
    digits = 2 if figure["most"] < 0.1 else 1
    middle, least, most = (f"{1e3 * figure[key]:.{digits}f}" for key in ("median", "least", "most"))
    return f"{middle} ({least} to {most})"


def factors(ways):
    """By way of untax: the time of the better way of transformers over its own, to the first token and of a token."""
    def best(key):
        return min((way[key]["median"] for name, way in ways.items() if not name.startswith("untax") and key in way), default=None)

    return {name: {key: best(key) / way[key]["median"] for key in ("first", "token")} for name, way in ways.items()
            if name.startswith("untax") and "first" in way and best("first")}


class Bench:
    def __init__(self, chosen, folder):
        self.chosen, self.folder = chosen, Path(folder)
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.device = torch.device(chosen.device if chosen.device == "cpu" else f"cuda:{os.environ['LOCAL_RANK']}")
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
        self.dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        self.fields = self.config()
        self.timer, self.place = Timer(self.device), record.place(self.device)
        self.rows = [{"sequences": sequences, "prompt": prompt, "ways": {}} for sequences, prompt in calls(chosen)]
        self.expected = {}  # by call: the tokens of the first way that has the common weights

    def config(self):
        """The fields of config.json, of the layers that are asked for."""
        fields = models.config_of(self.chosen.model) | {"torch_dtype": str(self.dtype).removeprefix("torch.")}
        fields.pop("dtype", None)
        whole = fields["num_hidden_layers"]
        fewer = min(self.chosen.layers or whole, whole)
        return {name: value[:fewer] if isinstance(value, list) and len(value) == whole else value
                for name, value in fields.items()} | {"num_hidden_layers": fewer}

    def model(self, parallel):
        """The model of transformers, with weights that do not depend on the number of ranks. `parallel`: split as it does it itself."""
        config = AutoConfig.for_model(**self.fields | dict.fromkeys(("eos_token_id", "bos_token_id", "pad_token_id")))
        with torch.device("meta"), no_tie_weights():
            model = AutoModelForCausalLM.from_config(config, dtype=self.dtype)  # sdpa, where it has that
        if parallel and self.ranks > 1:
            asked, _, mesh = type(model).prepare_distribute_model(DistributedConfig(tp_plan="auto"))
            model = type(model).maybe_distribute_model(model, asked, mesh)
        model.to_empty(device=self.device)
        model.init_weights()  # norms and rotations; the others are drawn below
        model.tie_weights()
        same = torch.Generator(self.device).manual_seed(1)
        with torch.no_grad():
            for weight in (weight for weight in model.parameters() if weight.dim() > 1):
                drawn = torch.randn(weight.shape, generator=same, dtype=self.dtype, device=self.device) * config.initializer_range
                split = isinstance(weight, DTensor)
                weight.copy_(distribute_tensor(drawn, weight.device_mesh, weight.placements, src_data_rank=None) if split else drawn)
        return model.eval()

    def generating(self, model, **options):
        def generate(ids, count):
            return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False, **options)

        return generate

    def eager(self):
        return self.generating(self.model(parallel=True))

    def compiled(self):
        if self.device.type != "cuda":
            raise Skipped("transformers compiles models on GPUs, and this is a CPU")
        return self.generating(self.model(parallel=True), cache_implementation="static")

    def split(self, **options):
        return self.generating(untax.torch.parallelize(self.model(parallel=False), **options))

    def invariant(self):
        return self.split(invariant=True)

    def decoder(self):
        path, most = self.folder / "config.json", max(row["sequences"] for row in self.rows)
        path.write_text(json.dumps(self.fields), encoding="utf-8")
        world = untax.torch.world_of(device=str(self.device))
        decoder = untax.torch.Decoder(untax.Decoder(
            world, path, random_weights=True, sequences=most,
            tokens=max(row["prompt"] for row in self.rows) + self.chosen.tokens + 1,
            prompt_tokens=max(row["sequences"] * row["prompt"] for row in self.rows), graphs=True), self.device)
        return lambda ids, count: decoder.generate(ids, max_new_tokens=count)

    def tried(self, run):
        """What `run` returns, and why there is no result: the same reason at all ranks."""
        result = fault = None
        try:
            result = run()
        except Skipped as reason:
            fault = str(reason)
        except Exception as error:  # an error of a way is its result, and the next way is measured
            fault = f"{type(error).__name__}: {error}".strip().split("\n")[0].replace(f"{self.folder}/", "")
        fault = first_fault(fault)
        return (None, fault) if fault else (result, None)

    def measured(self, way, generate, sequences, prompt):
        """The figures of a way for a call."""
        ids = torch.randint(self.fields["vocab_size"], (sequences, prompt),
                            generator=torch.Generator().manual_seed(sequences)).to(self.device)
        torch._dynamo.reset()  # so that a shape is not compiled for others, too

        def times(count):
            for _ in range(WARM_UP):
                result = generate(ids, count)
            if result.shape[1] != ids.shape[1] + count:
                raise RuntimeError(f"{result.shape[1] - ids.shape[1]} tokens were generated in place of {count}")
            untax.torch.forget()
            return result, worst([self.timer.interval(lambda: generate(ids, count)) for _ in range(self.chosen.repeat)], self.device)

        _, to_first = times(1)
        result, to_last = times(1 + self.chosen.tokens)
        figures = {"first": spread(to_first),
                   "token": spread([(t - median(to_first)) / self.chosen.tokens for t in to_last])}
        if counted := untax.torch.report():
            figures["report"] = str(counted).splitlines()
        if way != "untax.torch.Decoder":  # whose weights are others
            first = self.expected.setdefault((sequences, prompt), result)
            if first is not result:
                figures["same_tokens"] = (first == result)[:, ids.shape[1]:].long().cumprod(1).sum(1).double().mean().item()
        return figures

    def release(self):
        torch._dynamo.reset()
        _, fault = self.tried(untax.torch.close)
        gc.collect()  # models refer to themselves
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        if fault:
            self.say(f"untax.torch.close: {fault}")

    def say(self, text):
        if self.rank == 0:
            print(textwrap.fill(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False), flush=True)

    def run(self):
        for way in self.chosen.ways:
            self.say(f"{way}: making the model")
            generate, fault = self.tried(lambda: WAYS[way](self))
            for row in self.rows:
                figures, why = (None, fault) if fault else self.tried(
                    lambda: self.measured(way, generate, row["sequences"], row["prompt"]))
                row["ways"][way] = figures or {"not_run": why}
                row["factors"] = factors(row["ways"])
                self.say(f"{way}, {row['sequences']} x {row['prompt']}: {self.line(row['ways'][way])}")
                self.write()
            del generate
            self.release()

    def line(self, figures):
        if "not_run" in figures:
            return f"not run: {figures['not_run']}"
        text = f"first token {milliseconds(figures['first'])} ms, then {milliseconds(figures['token'])} ms a token"
        if "same_tokens" in figures:
            text += f"; {figures['same_tokens']:.1f} of {self.chosen.tokens + 1} tokens are those of the first way until one differs"
        return "; ".join([text, *figures.get("report", [])])

    def table(self):
        """All figures, at most WIDTH columns wide."""
        lines = [f"{'sequences':>9}{'prompt':>7} {'way':22}{'first token, ms':>24}{'ms per token':>22}{'factors':>15}"]
        for row in self.rows:
            for way, figures in row["ways"].items():
                cells = [f"{milliseconds(figures[key]) if key in figures else 'not run':>{width}}"
                         for key, width in (("first", 24), ("token", 22))]
                beside = ", ".join(f"{factor:.2f}" for factor in row["factors"].get(way, {}).values())
                lines.append(f"{row['sequences']:>9}{row['prompt']:>7} {way:22}{''.join(cells)}{beside:>15}")
        lines.append("Factors: the better way of transformers over untax, to the first token and of a token.")
        if self.rank == 0:
            print("\n".join(line.rstrip() for line in lines))

    def document(self):
        asked = {key: getattr(self.chosen, key) for key in ("tokens", "repeat")}
        if self.chosen.draw:
            asked |= {"draw": self.chosen.draw, "seed": self.chosen.seed}
        elif len(self.chosen.prompt) == 1:
            asked["prompt"] = self.chosen.prompt[0]
        path = Path(self.chosen.model)
        named = path.parent.name if path.is_file() and path.stem == "config" else path.name.removesuffix(".json")
        return ({"format": "untax-torch-models"} | self.place
                | {"transformers": transformers.__version__, "dtype": str(self.dtype).removeprefix("torch."), "model": named,
                   "layers": self.fields["num_hidden_layers"], "cut": bool(self.chosen.layers), "asked": asked, "unit": "seconds",
                   "rows": self.rows})

    def write(self):
        """Writes the whole file after each measurement, so that an interrupted run leaves its measurements."""
        if self.rank == 0 and self.chosen.json:
            Path(self.chosen.json).write_text(json.dumps(self.document(), indent=1) + "\n", encoding="utf-8")


WAYS = {"transformers": Bench.eager, "transformers, compiled": Bench.compiled, "untax": Bench.split,
        "untax.torch.Decoder": Bench.decoder, "untax, invariant": Bench.invariant}
USUAL_WAYS = list(WAYS)[:4]


def calls(chosen):
    """The calls that are timed, as numbers of sequences and tokens of each prompt."""
    if not chosen.draw:
        return [(sequences, prompt) for prompt in chosen.prompt for sequences in chosen.sequences]
    drawn = random.Random(chosen.seed)

    def between(values):
        return round(exp(drawn.uniform(log(min(values)), log(max(values)))))

    return [(between(chosen.sequences), between(chosen.prompt)) for _ in range(chosen.draw)]


def arguments():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--model", default="llama-3.1-8b", help="the name of a file in models/, or the path of a config.json")
    asked.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    asked.add_argument("--sequences", type=int, nargs="+", default=[1, 16], help="numbers of prompts of a call")
    asked.add_argument("--prompt", type=int, nargs="+", default=[2048], help="tokens of each prompt of a call")
    asked.add_argument("--tokens", type=int, default=128, help="tokens that are generated behind the first one")
    asked.add_argument("--repeat", type=int, default=5, help="calls of which a figure is the median")
    asked.add_argument("--draw", type=int, metavar="N", help="N calls at random, within --sequences and --prompt")
    asked.add_argument("--seed", type=int, default=1, help="of the calls that are drawn")
    asked.add_argument("--layers", type=int, help="only the first layers of the model, as many as this")
    asked.add_argument("--ways", nargs="+", choices=WAYS, default=USUAL_WAYS, metavar="WAY",
                       help="of " + ", ".join(f'"{way}"' for way in WAYS) + "; by default all but the last")
    asked.add_argument("--json", help="write the figures to this file")
    chosen = asked.parse_args()
    for name in ("sequences", "prompt", "tokens", "repeat", "layers", "draw"):
        values = getattr(chosen, name)
        if values is not None and min(values if isinstance(values, list) else [values]) < 1:
            asked.error(f"--{name} has to be at least 1")
    return chosen


def main():
    chosen = arguments()
    transformers.logging.set_verbosity_error()
    dist.init_process_group("gloo" if chosen.device == "cpu" else "nccl")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(chosen, folder)
        bench.run()
    bench.table()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
