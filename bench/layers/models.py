"""Shapes of the layers of a Llama or Qwen, from its config.json, and the part of them that a rank has."""
import json
from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parents[2] / "models"


@dataclass(frozen=True)
class Model:
    """Extents of one rank's part of a layer; `hidden` and `head_dim` are those of the whole layer."""

    name: str
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int

    @property
    def qkv(self):
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def attended(self):
        return self.heads * self.head_dim


def config_of(model):
    """The config.json of a model: a path, or the name of a file in `models/`."""
    path = Path(model) if Path(model).is_file() else MODELS / f"{model}.json"
    if not path.is_file():
        raise SystemExit(f"{model} is neither a config.json nor one of the models in models/: "
                         f"{', '.join(sorted(known.stem for known in MODELS.glob('*.json')))}")
    return json.loads(path.read_text(encoding="utf-8"))


def load(name, ranks, shrink=1):
    """The part of a model that each of `ranks` ranks has, with widths divided by `shrink`."""
    config = config_of(name)
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim", config["hidden_size"] // heads)
    for extent, key in ((heads, "num_attention_heads"), (kv_heads, "num_key_value_heads"),
                        (config["intermediate_size"], "intermediate_size")):
        if extent % ranks:
            raise SystemExit(f"{name}: {key} is {extent}, which {ranks} ranks cannot share equally")
    return Model(name, config["hidden_size"] // shrink, heads // ranks, kv_heads // ranks, max(head_dim // shrink, 8),
                 config["intermediate_size"] // ranks // shrink)
