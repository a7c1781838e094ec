"""untax.torch beside CUDA graphs, and operands that GPUs do not take where they lie; without a GPU."""

import importlib.util

import pytest

if importlib.util.find_spec("torch") is None:
    pytest.skip("torch is not installed", allow_module_level=True)

import torch

import untax
import untax.torch
from untax.torch import calls, groups


def test_a_first_call_in_a_capture_says_what_to_do(monkeypatch):
    def body(world):
        name = untax.torch.name_of(world)
        torch.ops.untax.all_reduce(torch.ones(8), "sum", name)
        with monkeypatch.context() as patch:
            patch.setattr(groups, "_is_captured", lambda device: True)
            torch.ops.untax.all_reduce(torch.ones(8), "sum", name)  # planned before
            with pytest.raises(untax.Unsupported, match="all_reduce of .*count.* is planned by a first call.*before the capture"):
                torch.ops.untax.all_reduce(torch.ones(300), "sum", name)
        assert (torch.ops.untax.all_reduce(torch.ones(300), "sum", name) == 1).all()

    untax.run_threads(1, body)


class OnGpu(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    is_cuda = True


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("columns", [8, 12])
def test_rows_that_kernels_cannot_read_are_copied(columns, dense):
    rows = torch.arange(4.0 * 40).to(torch.bfloat16).view(4, 40)
    odd = rows.flatten()[1:1 + 3 * 36].view(3, 36)
    for t in (rows, rows[:, :columns], rows[:, 1:1 + columns], odd, odd[:, :columns], rows.t(), rows[:1, :columns],
              rows[:1].expand(4, 40), rows[:0]):
        got = calls.rows_of(t.as_subclass(OnGpu), dense)
        assert torch.equal(got, t)
        assert got.data_ptr() % 16 == 0 and (got.shape[1] <= 1 or got.stride(1) == 1)
        if got.shape[0] > 1:
            gaps = got.stride(0) - got.shape[1]
            assert gaps == 0 or gaps > 0 and not dense and got.stride(0) % 8 == 0, got.stride()
    whole = rows.as_subclass(OnGpu)
    assert calls.rows_of(whole).data_ptr() == rows.data_ptr(), "what lies well is not copied"
    assert (calls.rows_of(whole[:, :8], dense).data_ptr() == rows.data_ptr()) is not dense
