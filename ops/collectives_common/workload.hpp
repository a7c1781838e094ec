#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <untax/core/array_view.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/collective_problems.hpp>
#include <untax/tile/program.hpp>
#include <untax/world/world.hpp>

#include "engines/bulk/scratch.hpp"
#include "engines/schedule/plan.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/common/random_matrix.hpp"
#include "ops/common/trial.hpp"

namespace untax {

/// A problem for any of the collectives; each uses the fields it knows.
struct collective_problem {
  std::int64_t count = 0;
  dtype type = dtype::f32;
  reduction how = reduction::sum;
  int root = 0;
  bool uneven = false;  ///< all_to_all: parts of different sizes, some empty
};

/// Where an element of a result comes from: element `index` of rank `from`, or of all ranks,
/// combined, if `from` is negative.
struct origin {
  int from = 0;
  std::int64_t index = 0;
};

/// A collective behind an interface that is the same for all.
class runnable_collective {
 public:
  runnable_collective() = default;
  runnable_collective(const runnable_collective&) = delete;
  runnable_collective& operator=(const runnable_collective&) = delete;
  virtual ~runnable_collective() = default;

  virtual void run(const const_array_view& in, const array_view& out, stream_ref stream) = 0;
  [[nodiscard]] virtual const collective_plan& plan() const = 0;
  [[nodiscard]] virtual const std::string& explain() const = 0;
};

/// The traffic of a ring: bytes out of its busiest rank, and the hops of the last of them.
struct ring_traffic {
  double sent = 0;
  int hops = 1;
};

/// What the command and the tests know about a collective. A collective adds itself to
/// `collectives()`.
struct collective_entry {
  std::string name;
  std::string summary;
  bool combines = false;
  bool has_root = false;
  bool has_phases = false;
  bool has_uneven = false;  ///< each rank has parts for the others, of any size

  std::function<std::unique_ptr<runnable_collective>(world&, const collective_problem&,
                                                     const collective_options&)>
      make;
  std::function<std::int64_t(const collective_problem&, int world, int rank)> in_count;
  std::function<std::int64_t(const collective_problem&, int world, int rank)> out_count;
  std::function<origin(const collective_problem&, int world, int rank, std::int64_t element)>
      origin_of;
  std::function<collective_plan(const collective_problem&, int world, int rank,
                                const collective_options&)>
      plan;
  /// All steps of a rank in `epochs` epochs.
  std::function<schedule::rank_plan(const collective_problem&, const collective_plan&,
                                    std::uint64_t epochs)>
      schedule;
  /// A rank's plan on GPUs, and the programs of a plan.
  std::function<collective_plan(const collective_problem&, int world, int rank,
                                const collective_options&)>
      device_plan;
  std::function<program(const collective_problem&, const collective_plan&)> program_of;
  /// The least bytes that have to cross the busiest link. Rates are computed from them.
  std::function<double(const collective_problem&, int world)> bytes;
  /// The traffic of a ring algorithm that moves `bytes` bytes in all.
  std::function<ring_traffic(double bytes, int world)> ring = [](double all, int world) {
    return ring_traffic{all * (world - 1.0) / world, world - 1};
  };
};

/// Patterns that collectives have.
inline constexpr pattern collective_patterns[] = {
    pattern::bulk_synchronous, pattern::fused_sequential, pattern::fused_specialized};

/// One rank's collective with inputs from N(0, 1), and a result that can be checked. In a world of
/// GPUs the elements lie in memory of the rank's GPU, and the host keeps a copy: values are made
/// and results checked on the host.
class collective_workload final : public trial {
 public:
  /// Collective.
  collective_workload(world& w, const collective_entry& entry, const collective_problem& problem,
                      const collective_options& options, std::uint64_t seed);
  /// Collective.
  ~collective_workload() override;

  void refresh(std::uint64_t seed) override;
  void poison_result() override;
  /// Returns when the result is complete.
  void run() override { op_->run(as_const(in_), out_, {}); }
  /// The error of sums is relative to at least the norm expected of N(0, 1) inputs.
  [[nodiscard]] double relative_error() const override;
  /// How many elements differ by a bit from the contributions combined in fp32 in rank order and
  /// rounded once.
  [[nodiscard]] std::int64_t wrong_bits() const;
  /// The result, in memory of the host or of the rank's GPU.
  [[nodiscard]] const array_view& result() const noexcept { return out_; }
  [[nodiscard]] pattern chosen() const override { return op_->plan().how; }
  [[nodiscard]] const std::string& explain() const override { return op_->explain(); }

 private:
  /// Memory for elements of the caller: this rank's own or, where peers touch it, symmetric.
  struct caller_memory {
    std::vector<std::byte> own;  ///< of the host; empty where `shared` is what the host uses
    bulk::scratch device;
    owned_symmetric<std::byte> shared;
    bool on_gpu = false;

    /// What is passed to the collective.
    [[nodiscard]] array_view elements(dtype type, std::int64_t count);
    /// What the host reads and writes: the same, or a copy of what is on a GPU.
    [[nodiscard]] array_view on_host(dtype type, std::int64_t count);
  };
  using count_of_rank = std::function<std::int64_t(const collective_problem&, int world, int rank)>;
  [[nodiscard]] caller_memory make_memory(const count_of_rank& count) const;
  /// Element `i` of the input of a rank, rounded to the element type.
  [[nodiscard]] float input(int rank, std::int64_t i) const;
  [[nodiscard]] float result_at(std::int64_t i) const;
  /// Makes the host's copy of a result on a GPU.
  void fetch_result() const;
  /// What element `i` of the result should be, computed as T, not rounded.
  template <class T>
  [[nodiscard]] T reference(std::int64_t i) const;

  const collective_entry* entry_;
  collective_problem problem_;
  world* ranks_;
  bool direct_;
  int world_;
  int rank_;
  random_matrix values_;
  caller_memory in_memory_;
  caller_memory out_memory_;
  array_view in_;
  array_view out_;
  array_view host_in_;   ///< `in_`, or the host's copy of it
  array_view host_out_;  ///< `out_`, or the host's copy of it
  std::unique_ptr<runnable_collective> op_;
};

/// "all_reduce, count 1000, bf16, sum".
[[nodiscard]] std::string describe(const collective_entry& entry,
                                   const collective_problem& problem);

/// A subject of `untax run`, for worlds with heaps in `memory`. `entry` has to outlive it.
[[nodiscard]] trial_subject subject_of(const collective_entry& entry,
                                       const collective_problem& problem,
                                       const collective_options& options,
                                       memory_kind memory = memory_kind::host);

}  // namespace untax
