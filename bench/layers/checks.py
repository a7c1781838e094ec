"""Checks results: the error of the whole, and of each element relative to its row."""
import torch


class Wrong(Exception):
    """The result of a way differs from the reference."""


def errors(got, expected):
    """The Frobenius norm of the error over that of the result, and the largest error of an element over the root mean
    square of its row; infinite if an element is not finite."""
    got, expected = got.float(), expected.float()
    error = got - expected
    if not torch.isfinite(error).all():
        return float("inf"), float("inf")
    rows = expected.pow(2).mean(-1, keepdim=True).sqrt().clamp_min(1e-20)
    return (error.norm() / expected.norm()).item(), (error.abs() / rows).max().item()


def require(got, expected, whole, element):
    """Returns both errors. Raises Wrong if one is above its limit."""
    if got.shape != expected.shape:
        raise Wrong(f"the result is {tuple(got.shape)}, and has to be {tuple(expected.shape)}")
    deviation = errors(got, expected)
    if not (deviation[0] <= whole and deviation[1] <= element):
        raise Wrong(f"relative error {deviation[0]:.2e}, at most {whole}; of an element over its row {deviation[1]:.2e}, at most "
                    f"{element}")
    return deviation
