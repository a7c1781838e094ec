#include "ops/gemm_reduce_common/sum_exchange.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <untax/ops/collectives.hpp>
#include <untax/tile/shard.hpp>

#include "engines/bulk/communicator.hpp"
#include "engines/bulk/scratch.hpp"
#include "engines/bulk/slab_gather.hpp"

namespace untax {
namespace {

/// The sizes of an exchange.
struct exchange_sizes {
  exchange_sizes(const world& w, const device_sum& sum, bool varying_rows)
      : scatters(sum.target == reduce_target::owner), type(sum.partials) {
    const sharding rows{sum.m, w.size()};
    shard = (scatters ? rows.full() : sum.m) * sum.n;
    whole = scatters ? shard * w.size() : shard;
    const bool even = !scatters || (!varying_rows && rows.full() * w.size() == sum.m);
    always_fits = even && sum.partials == sum.type;
  }

  [[nodiscard]] std::size_t bytes(std::int64_t count) const {
    return static_cast<std::size_t>(count) * size_of(type);
  }

  bool scatters;
  dtype type;
  std::int64_t shard = 0;    ///< elements of a sum at a rank
  std::int64_t whole = 0;    ///< elements of a partial
  bool always_fits = false;  ///< whether C of every run can take its sum in place
};

class library_exchange final : public sum_exchange {
 public:
  library_exchange(world& w, const exchange_sizes& sizes)
      : sizes_(sizes), ranks_(bulk::communicator_of(w)), partial_(sizes.bytes(sizes.whole)) {
    const std::size_t bytes = sizes.bytes(sizes.whole);
    bulk::copy_and_wait(partial_.data(), std::vector<std::byte>(bytes).data(), bytes);
    if (!sizes.always_fits) sum_ = bulk::scratch(sizes.bytes(sizes.shard));
  }

  [[nodiscard]] void* partial() const override { return partial_.data(); }
  [[nodiscard]] void* place_for(void* c, bool fit) const override { return fit ? c : sum_.data(); }
  void run(void* to, std::int64_t count, stream_ref stream) override {
    if (sizes_.scatters)
      return ranks_->reduce_scatter(partial_.data(), to, count, sizes_.type, reduction::sum,
                                    stream);
    ranks_->all_reduce(partial_.data(), to, count, sizes_.type, reduction::sum, stream);
  }
  [[nodiscard]] std::string text() const override {
    return fmt::format("{} in {} by {}", sizes_.scatters ? "one reduce-scatter" : "one all-reduce",
                       name_of(sizes_.type), bulk::nccl().text);
  }

 private:
  exchange_sizes sizes_;
  std::shared_ptr<bulk::communicator> ranks_;
  bulk::scratch partial_;
  bulk::scratch sum_;
};

class kernel_exchange final : public sum_exchange {
 public:
  kernel_exchange(world& w, const device_sum& sum, const exchange_sizes& sizes, bool varying_rows,
                  const symmetric_result& result)
      : world_(&w.stable_view()),
        sizes_(sizes),
        // Between two ranks a second phase does not save bytes, and a result that peers write would
        // have to be copied into C.
        passes_on_(!sizes.scatters && w.size() > 2) {
    const auto memory = [&](std::int64_t count, const char* what) {
      return w.allocate_owned_cleared<std::byte>(std::max<std::size_t>(sizes.bytes(count), 1),
                                                 fmt::format("{} {}", sum.operator_name, what));
    };
    partial_ = memory(sizes.whole, "partial");
    if (passes_on_) {
      if (!sizes.always_fits) passed_on_ = memory(sizes.shard, "sum of partials");
      passed_to_ = sizes.always_fits ? result.data : passed_on_->local();
    } else if (!sizes.always_fits) {
      sum_ = bulk::scratch(sizes.bytes(sizes.shard));
    }
    collective_options options;
    options.direct = true;
    options.varying_count = varying_rows;
    if (sizes.scatters) {
      scatter_.emplace(w, reduce_scatter_problem{.count = sizes.whole, .type = sizes.type},
                       options);
    } else {
      options.phases = passes_on_ ? 0 : 1;
      reduce_.emplace(w, all_reduce_problem{.count = sizes.whole, .type = sizes.type}, options);
    }
    show_memory();
  }
  ~kernel_exchange() override {
    if (!world_->stopped() && !world_->unwinding()) return;
    partial_.abandon();
    passed_on_.abandon();
  }

  [[nodiscard]] void* partial() const override { return partial_->local(); }
  [[nodiscard]] void* place_for(void* c, bool fit) const override {
    if (passes_on_) return passed_to_;
    return fit ? c : sum_.data();
  }
  void run(void* to, std::int64_t count, stream_ref stream) override {
    const const_array_view whole{partial_->local(), sizes_.type,
                                 sizes_.scatters ? count * world_->size() : count};
    if (scatter_) return scatter_->run(whole, {to, sizes_.type, count}, stream);
    reduce_->run(whole, {to, sizes_.type, count}, stream);
  }
  [[nodiscard]] std::string text() const override {
    return scatter_ ? scatter_->explain() : reduce_->explain();
  }

 private:
  /// The first run on memory compares its offset at all ranks, which a capture cannot.
  void show_memory() {
    if (passes_on_) return run(passed_to_, sizes_.shard, {});
    const bulk::scratch nowhere(sizes_.bytes(sizes_.shard));
    run(nowhere.data(), sizes_.shard, {});
  }

  world* world_;
  exchange_sizes sizes_;
  bool passes_on_;
  owned_symmetric<std::byte> partial_;
  owned_symmetric<std::byte> passed_on_;  ///< used if C cannot take a sum in place
  void* passed_to_ = nullptr;
  bulk::scratch sum_;
  std::optional<reduce_scatter> scatter_;
  std::optional<all_reduce> reduce_;
};

}  // namespace

std::shared_ptr<sum_exchange> exchange_by_library(world& w, const device_sum& sum,
                                                  bool varying_rows) {
  return std::make_shared<library_exchange>(w, exchange_sizes(w, sum, varying_rows));
}

std::shared_ptr<sum_exchange> exchange_by_kernels(world& w, const device_sum& sum,
                                                  bool varying_rows,
                                                  const symmetric_result& result) {
  return std::make_shared<kernel_exchange>(w, sum, exchange_sizes(w, sum, varying_rows),
                                           varying_rows, result);
}

}  // namespace untax
