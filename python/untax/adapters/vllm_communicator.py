"""vLLM's communicator of a group, with sums on untax. Imported by vLLM, by its name."""

from __future__ import annotations

import logging
from typing import Any

from torch import Tensor
from vllm.distributed.device_communicators.cuda_communicator import CudaCommunicator

from .communicator import adopt, sums_of


class Communicator(CudaCommunicator):
    """As CudaCommunicator, but `ca_comm`, which groups for tensor parallelism have, sums on untax, and is asked first."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        if self.ca_comm is not None:
            self.ca_comm = adopt(self.ca_comm, self.cpu_group, self.device, logging.getLogger("vllm.untax"))

    def all_reduce(self, input_: Tensor) -> Tensor:
        sums = sums_of(self.ca_comm)
        if sums is not None and sums.takes_sum(input_):
            return sums.all_reduce(input_)
        return super().all_reduce(input_)
