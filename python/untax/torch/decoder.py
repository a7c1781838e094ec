"""Whole models on untax alone, with tensors for their tokens and logits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .. import decoder
from ..errors import InvalidArgument
from .groups import world_of


class Decoder:
    """`untax.Decoder` over the ranks of a process group of torch. Tokens are int64, on `device`, where the model is; logits are
    fp32, on the CPU. All ranks make the same calls with the same tokens, and all get the same results. `decoder` is the
    `untax.Decoder`, for functions that this class lacks, such as `stage` and `step`."""

    def __init__(self, decoder: decoder.Decoder, device: torch.device) -> None:
        self.decoder, self.device = decoder, device

    @classmethod
    def from_pretrained(cls, folder: str | Path, group: Any = None, *, device: Any = None, **options: Any) -> Decoder:
        """Collective. The model in a folder of Hugging Face with config.json and model.safetensors or its parts, of which each rank
        reads what it holds, part by part. `group` is a process group, its name, a world, or None for the default group; `device`
        is the current GPU, or the CPU where torch has none. `options` are those of `untax.Decoder`: `sequences`, `tokens`,
        `logits` and others.

        `InvalidArgument` for a folder without such files, `Unsupported` with the name of a field, `OutOfMemory`."""
        if device is None:
            device = torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else "cpu"
        world = world_of(group, str(device))
        return cls(decoder.Decoder(world, folder, **options), torch.device(device))

    def add(self) -> int:
        """Begins a sequence without tokens, and returns its number."""
        return self.decoder.add()

    def fork(self, sequence: int) -> int:
        """Begins a sequence with the tokens of another one, whose full pages of the cache it shares."""
        return self.decoder.fork(sequence)

    def remove(self, sequence: int) -> None:
        """Ends a sequence and frees its pages."""
        self.decoder.remove(sequence)

    def length(self, sequence: int) -> int:
        """The number of tokens of a sequence."""
        return self.decoder.length(sequence)

    def _tensor(self, tokens: list[int]) -> Tensor:
        return torch.tensor(tokens, dtype=torch.int64, device=self.device)

    def prefill(self, prompts: Mapping[int, Tensor]) -> Tensor:
        """Appends tokens, [length], to sequences by their numbers; returns the next token of each, the one with the largest
        logit, [sequences]."""
        return self._tensor(self.decoder.prefill({sequence: prompt.tolist() for sequence, prompt in prompts.items()}))

    def decode(self, sequences: Sequence[int], tokens: Tensor | None = None) -> Tensor:
        """Appends a token, of [sequences], to each of `sequences` and returns the next ones. Without tokens they are the results of
        the run before."""
        return self._tensor(self.decoder.decode(sequences, None if tokens is None else tokens.tolist()))

    def logits(self) -> Tensor:
        """The logits of the last run, [sequences, vocabulary], for a model with `logits=True`."""
        return torch.from_numpy(self.decoder.logits())

    def generate(self, input_ids: Tensor, attention_mask: Tensor | None = None, *, max_new_tokens: int) -> Tensor:
        """Continues prompts, [batch, length], by the tokens with the largest logits: [batch, length + max_new_tokens], as
        `generate` of transformers with `do_sample=False`, but for tokens that end a sequence, which are like others. Tokens with
        a zero in `attention_mask` are padding, on either side.

        `InvalidArgument` for an attention mask of another shape, and for prompts without tokens."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        if attention_mask.shape != input_ids.shape:
            raise InvalidArgument(f"attention_mask is {tuple(attention_mask.shape)}; it has to be {tuple(input_ids.shape)}, like "
                                  "input_ids")
        prompts = [ids[kept != 0].tolist() for ids, kept in zip(input_ids.cpu(), attention_mask.cpu(), strict=True)]
        continued = self._tensor(self.decoder.generate(prompts, max_new_tokens))
        return torch.cat([input_ids.to(self.device), continued], 1)

    @property
    def closed(self) -> bool:
        return self.decoder.closed

    def close(self) -> None:
        """Ends the use of the decoder by this rank. The memory is freed when all ranks have called this and meet."""
        self.decoder.close()
