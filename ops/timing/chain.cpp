#include "ops/timing/chain.hpp"

#include <algorithm>

namespace untax {
namespace {

/// Kernels of a layer beside sums over ranks: four products, rotation, attention, two norms; with
/// libraries also a function of gate and up.
constexpr int layer_kernels = 8;
constexpr int library_layer_kernels = layer_kernels + 1;
/// Kernels at the ends of a step: embedding, first norm, head, and the largest logit of a rank and
/// of all ranks.
constexpr int end_kernels = 5;
/// The number of times that the blocks of the one kernel synchronise in a layer.
constexpr int meetings = 5;

double products(predictor& p, const timed_chain& c, bool by_library) {
  const auto product = [&](std::int64_t n, std::int64_t k) {
    return p.gemm_alone({c.sequences, n, k}, by_library);
  };
  return product((c.heads + 2 * c.kv_heads) * c.head_dim, c.hidden) +
         product(c.hidden, c.heads * c.head_dim) + product(2 * c.intermediate, c.hidden) +
         product(c.hidden, c.intermediate);
}

double attention(predictor& p, const timed_chain& c, std::int64_t keys) {
  return p
      .predict({.op = "flash_decode",
                .by = "local",
                .m = c.sequences,
                .heads = c.heads,
                .kv_heads = c.kv_heads,
                .head_dim = c.head_dim,
                .keys = keys})
      .seconds;
}

/// A sum over ranks of a row for each sequence, by a separate kernel.
double sum(predictor& p, const timed_chain& c, bool by_library) {
  if (c.ranks == 1) return 0;
  const double bytes = timed_element_bytes * static_cast<double>(c.sequences * c.hidden);
  if (by_library) return p.library_collective("all_reduce", c.ranks, bytes);
  return p.predict({.op = "all_reduce", .by = "untax", .ranks = c.ranks, .bytes = bytes}).seconds;
}

/// Seconds that a host takes to launch `kernels` kernels, `sums` of which are collectives with the
/// product ahead of them.
double launches(const predictor& p, int kernels, int sums) {
  const timing::machine_numbers& n = p.numbers();
  return sums * n.library_run + (kernels - sums) * n.launch_eager;
}

}  // namespace

chain_parts predict_chain(predictor& p, const timed_chain& c, std::int64_t keys, pattern how,
                          launch_mode launch) {
  const double start = p.numbers().start;
  const bool by_library = how == pattern::bulk_library;
  const bool fuses = !is_bulk(how);
  const double added = sum(p, c, by_library);
  chain_parts parts;
  parts.layer = products(p, c, by_library) + attention(p, c, keys);
  if (fuses) {  // the sum is part of the kernel that normalises, or of the step's kernel
    parts.layer +=
        (c.one_kernel ? meetings : layer_kernels) * start + 2 * std::max(0.0, added - start);
  } else {
    parts.layer += (by_library ? library_layer_kernels : layer_kernels) * start + 2 * added;
  }
  parts.ends =
      p.gemm_alone({c.sequences, c.vocabulary, c.hidden}, by_library) + end_kernels * start + added;
  if (launch == launch_mode::eager) {
    const int sums = c.ranks > 1 ? 1 : 0;
    parts.layer = std::max(parts.layer, launches(p, library_layer_kernels, 2 * sums));
    parts.ends = std::max(parts.ends, launches(p, end_kernels, sums));
  }
  return parts;
}

}  // namespace untax
