"""The parts of matrix products that the examples share."""

import torch
import triton
import triton.language as tl

import untax.triton as ut

# Tiles by what multiplies them: tensor cores of a GPU, or numpy.
SIZES = (dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, num_warps=8, num_stages=4) if torch.cuda.is_available()
         else dict(BLOCK_M=32, BLOCK_N=32, BLOCK_K=32))


@triton.jit
def place(tile, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Row and column at which a tile of [m, n] begins: eight rows of tiles at a time, so that caches keep both operands."""
    across = tl.cdiv(n, BLOCK_N)
    group = tile // (8 * across)
    height = tl.minimum(tl.cdiv(m, BLOCK_M) - 8 * group, 8)
    inside = tile % (8 * across)
    return (8 * group + inside % height) * BLOCK_M, inside // height * BLOCK_N


@triton.jit
def product(a, b, row, column, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A tile of a @ b, in fp32: a is [m, k], b is [k, n], and k a multiple of BLOCK_K."""
    rows = (row + tl.arange(0, BLOCK_M)) % m  # beyond the end the beginning is read, and not stored
    columns = (column + tl.arange(0, BLOCK_N)) % n
    inner = tl.arange(0, BLOCK_K)
    left = a + rows[:, None] * k + inner[None, :]
    right = b + inner[:, None] * n + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, k, BLOCK_K):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BLOCK_K
        right += BLOCK_K * n
    return total


@triton.jit
def part(row, column, m, n, stride, first, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Offsets and mask of a tile of [m, n], whose columns begin at `first` of rows that are `stride` long."""
    rows = row + tl.arange(0, BLOCK_M)
    columns = column + tl.arange(0, BLOCK_N)
    return rows[:, None] * stride + first + columns[None, :], (rows[:, None] < m) & (columns[None, :] < n)


@triton.jit
def open_run(ready, run, context):
    """The kernel's first program tells the peers that they may write: this rank has done all that came before the kernel."""
    if tl.program_id(0) == 0:
        for peer in range(context.size):
            ut.signal(ready + context.rank, run, peer, context)


@triton.jit(do_not_specialize=["count"])
def close_run(arrived, count, context):
    """A kernel of one program, which ends when every rank has raised its counter to `count`."""
    for peer in range(context.size):
        ut.wait(arrived + peer, count, peer, context)


def operands(world, m, n, k, seed):
    """a [m, k] and the b [k, n] of all ranks, the same at every rank."""
    device = "cpu" if world.device < 0 else f"cuda:{world.device}"
    generator = torch.Generator(device).manual_seed(seed)
    a, *b = (torch.randn(shape, generator=generator, device=device, dtype=torch.float16)
             for shape in ((m, k), *[(k, n)] * world.size))
    return a, b


def settle(world):
    """Returns when the kernels of all ranks have ended, and raises what went wrong in them."""
    if world.device >= 0:
        torch.cuda.synchronize()
    world.check()
    world.barrier()


def expect_close(c, expected, name):
    error = ((c.float() - expected).norm() / expected.norm()).item()
    assert error < 2e-3, f"{name}: relative error {error}"
