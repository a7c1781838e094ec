#include "engines/bulk/gathered_product.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/bulk/quickest.hpp"
#include "engines/gpu/matrix/matrix.hpp"

namespace untax::bulk {
namespace {

std::size_t bytes_of(std::int64_t rows, std::int64_t cols, dtype type) {
  return static_cast<std::size_t>(rows * cols) * size_of(type);
}

/// The products of slabs; none if this rank has no room for their sums.
std::optional<slab_products> products_that_add(const library_product& whole,
                                               const sharding& shards) {
  try {
    return slab_products(whole, shards);
  } catch (const error& e) {
    if (e.code() != errc::out_of_memory) throw;
    return std::nullopt;
  }
}

}  // namespace

gathered_product::gathered_product(world& w, const library_product& whole, const sharding& shards,
                                   void* slabs)
    : whole_(whole),
      shards_(shards),
      at_once_(whole),
      joined_(bytes_of(whole.m, whole.k, whole.type)) {
  at_once_.settle();
  choose(w, products_that_add(whole, shards), slabs);
}

void gathered_product::choose(world& w, std::optional<slab_products> added, void* slabs) {
  const std::int64_t m = whole_.m;
  const std::int64_t n = whole_.n;
  const std::int64_t k = whole_.k;
  const dtype type = whole_.type;
  const scratch weights(bytes_of(n, k, type));
  const scratch c(bytes_of(m, n, whole_.result));
  const auto try_both = [&](int way, int round, stream_ref stream) {
    if (round == 0 && way == 0) {
      gpu::fill_normal({weights.data(), type, n, k}, 1, {0, n}, {0, k}, stream);
      gpu::fill_normal({slabs, type, m, k}, 2, {0, m}, {0, k}, stream);
    }
    if (way == 0) {
      join_and_multiply(slabs, weights.data(), c.data(), stream);
    } else {
      added->run(slabs, weights.data(), c.data(), stream);
    }
  };
  std::vector<double> mine = seconds_of(added ? 2 : 1, try_both);
  mine.resize(2, std::numeric_limits<double>::infinity());
  const std::vector<double> seconds = longest_of_ranks(w, mine);
  const bool adds = seconds[1] < seconds[0];
  if (adds) {
    added_ = std::move(added);
    joined_ = {};
  }
  text_ = fmt::format(
      "{} by {}; joining and one GEMM took {:.1f} us, {}",
      adds ? "a GEMM for each slab that adds in fp32" : "one GEMM of the slabs joined", blas().text,
      1e6 * seconds[0],
      std::isfinite(seconds[1]) ? fmt::format("GEMMs that add {:.1f} us", 1e6 * seconds[1])
                                : "and a rank has no room for sums in fp32");
}

void gathered_product::vary_rows() {
  at_once_.vary_rows();
  if (added_) added_->vary_rows();
}

void gathered_product::set_rows(std::int64_t m) {
  whole_.m = m;
  at_once_.set_rows(m);
  if (added_) added_->set_rows(m);
}

void gathered_product::join_and_multiply(const void* slabs, const void* weights, void* c,
                                         stream_ref stream) const {
  gpu::join_slabs(slabs, joined_.data(), whole_.m, shards_, stream);
  at_once_.run(joined_.data(), weights, c, stream);
}

void gathered_product::run(const void* slabs, const void* weights, void* c,
                           stream_ref stream) const {
  if (added_) return added_->run(slabs, weights, c, stream);
  join_and_multiply(slabs, weights, c, stream);
}

}  // namespace untax::bulk
