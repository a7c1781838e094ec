#pragma once

#include <cstdint>

#include <untax/core/matrix.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/tile/shard.hpp>

// Plain kernels on matrices of one GPU: values, references, comparisons. All but `compare` are
// asynchronous on `stream`, which belongs to the current device, and can be captured. Matrices lie
// in memory of that device. They throw `unsupported` where CUDA is not compiled in.

namespace untax::gpu {

/// Loads all kernels of this file on the current device: loading one at first use could block
/// behind a kernel that waits for a peer.
void load_matrix_kernels();

/// to = the part [rows x cols] of a matrix of N(0, 1). Each element is a function of seed, row and
/// column, so any rank can compute any part and gets the same values.
void fill_normal(const matrix& to, std::uint64_t seed, range rows, range cols, stream_ref stream);

/// Sets all bits of [to, to + bytes), which is NaN in every element type.
void fill_nan(void* to, std::size_t bytes, stream_ref stream);

/// c = a * b^T in a plain loop that adds in fp32. `c` is fp32.
void multiply_plainly(const const_matrix& a, const const_matrix& b, const matrix& c,
                      stream_ref stream);

/// to = from, which is fp32, rounded to nearest. Both have one size and no gaps between rows.
void round_to(const matrix& to, const const_matrix& from, stream_ref stream);

/// joined [rows, shards.extent] = slabs side by side. Slab s [rows, shards.of(s).size] has no gaps
/// and begins where it would if all slabs before it were full. Elements have 2 bytes; everything
/// begins at multiples of 16 bytes.
void join_slabs(const void* slabs, void* joined, std::int64_t rows, const sharding& shards,
                stream_ref stream);

/// Sums over all elements, without those whose difference is not finite.
struct comparison {
  double difference = 0;     ///< squares of is - should
  double size = 0;           ///< squares of should
  std::uint64_t broken = 0;  ///< elements of which one is finite and the other is not
  float worst = 0;           ///< the largest error of an element, in units of its bound
};

/// Elements may be wrong by `share` of their own size or, if that is larger, of the root mean
/// square of their row in `should`; squares count as at least `least_square`. Synchronises the
/// stream. `scratch` is 64 bytes of device memory.
[[nodiscard]] comparison compare(const const_matrix& is, const const_matrix& should, double share,
                                 double least_square, void* scratch, stream_ref stream);

}  // namespace untax::gpu
