"""The plugin for vLLM: gives vLLM the classes of untax when it asks its platform for classes."""

from __future__ import annotations

import logging

from .switch import is_on

VERSIONS = ("0.33.0",)
_log = logging.getLogger("vllm.untax")  # below vLLM's own logger, which has a handler
COMMUNICATOR = "untax.adapters.vllm_communicator.Communicator"


def register() -> None:
    """The entry point in `vllm.general_plugins`, called in each process. Imports nothing of vLLM but its platform. vLLM
    calls the two methods below in workers, which need the other modules anyway."""
    if not is_on("vllm", "UNTAX_VLLM", VERSIONS, _log):
        return
    from vllm.platforms import current_platform

    if not current_platform.is_cuda():
        _log.info("untax leaves vLLM as it is: its platform is not CUDA")
        return
    platform = type(current_platform)
    if platform.get_device_communicator_cls() == COMMUNICATOR:
        return
    pass_manager = platform.get_pass_manager_cls()

    def get_pass_manager_cls(cls: type) -> str:
        try:
            from .vllm_norm import take_over

            take_over(_log)
        except Exception as error:  # noqa: BLE001 - vLLM goes on without untax's norm
            _log.warning("untax leaves the sums with norm of vLLM: %s", error)
        return pass_manager

    platform.get_device_communicator_cls = classmethod(lambda cls: COMMUNICATOR)
    platform.get_pass_manager_cls = classmethod(get_pass_manager_cls)
