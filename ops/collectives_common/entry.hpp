#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <untax/core/array_view.hpp>
#include <untax/core/stream_ref.hpp>
#include <untax/ops/collective_problems.hpp>
#include <untax/tile/program.hpp>
#include <untax/world/world.hpp>

#include "ops/collectives_common/planning.hpp"

namespace untax {

/// A problem for any of the collectives; each uses the fields it knows.
struct collective_problem {
  std::int64_t count = 0;
  dtype type = dtype::f32;
  reduction how = reduction::sum;
  int root = 0;
  bool uneven = false;  ///< all_to_all: parts of different sizes, some empty
};

/// The origin of an element of a result: element `index` of rank `from`, or of all ranks, combined,
/// if `from` is negative.
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

/// The description of a collective for the command and the tests. A collective adds itself to
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
  /// A rank's plan on GPUs, and the programs of a plan.
  std::function<collective_plan(const collective_problem&, int world, int rank,
                                const collective_options&)>
      device_plan;
  std::function<program(const collective_problem&, const collective_plan&)> program_of;
  /// The least bytes that have to cross the busiest link. Rates are computed from them.
  std::function<double(const collective_problem&, int world)> bytes;
  /// The traffic of a ring algorithm that moves `bytes` bytes in all.
  std::function<ring_traffic(double bytes, int world)> ring = [](double bytes_of_vector,
                                                                 int world) {
    return ring_traffic{bytes_of_vector * (world - 1.0) / world, world - 1};
  };
};

/// Patterns that collectives have.
inline constexpr pattern collective_patterns[] = {
    pattern::bulk_synchronous, pattern::fused_sequential, pattern::fused_specialized};

/// Runs the class of any collective through one interface.
template <class Operator>
class collective_runner final : public runnable_collective {
 public:
  template <class Problem>
  collective_runner(world& w, const Problem& problem, const collective_options& options)
      : op_(w, problem, options) {}

  void run(const const_array_view& in, const array_view& out, stream_ref stream) override {
    op_.run(in, out, stream);
  }
  [[nodiscard]] const collective_plan& plan() const override { return op_.plan(); }
  [[nodiscard]] const std::string& explain() const override { return op_.explain(); }

 private:
  Operator op_;
};

/// A protocol together with its problem, to which it refers.
template <class Protocol>
class with_own_problem : public Protocol {
 public:
  with_own_problem(Protocol protocol, std::shared_ptr<const void> problem)
      : Protocol(std::move(protocol)), problem_(std::move(problem)) {}

 private:
  std::shared_ptr<const void> problem_;
};

/// The part of an entry that follows from the class, and from `problem_of(problem, world)`, which
/// converts a `collective_problem` to the collective's own. Uses its `need_of` and
/// `with_protocol_for`.
template <class Operator, class ProblemOf>
[[nodiscard]] collective_entry entry_of(std::string name, ProblemOf problem_of) {
  collective_entry entry;
  entry.name = std::move(name);
  entry.make = [problem_of](world& w, const collective_problem& p,
                            const collective_options& o) -> std::unique_ptr<runnable_collective> {
    return std::make_unique<collective_runner<Operator>>(w, problem_of(p, w.size()), o);
  };
  entry.plan = [problem_of](const collective_problem& p, int world, int rank,
                            const collective_options& o) {
    return plan_collective(world, rank, need_of(problem_of(p, world), world), o).plan;
  };
  entry.device_plan = [problem_of](const collective_problem& p, int world, int rank,
                                   const collective_options& o) {
    return plan_collective(world, rank, need_of(problem_of(p, world), world), o, memory_kind::cuda)
        .plan;
  };
  entry.program_of = [problem_of](const collective_problem& p, const collective_plan& plan) {
    using own_problem = std::remove_cvref_t<decltype(problem_of(p, plan.world))>;
    const auto own = std::make_shared<const own_problem>(problem_of(p, plan.world));
    return with_protocol_for(*own, plan, [&]<class Protocol>(Protocol protocol) {
      return program(with_own_problem<Protocol>(std::move(protocol), own));
    });
  };
  entry.in_count = [problem_of](const collective_problem& p, int world, int rank) {
    return Operator::in_count(problem_of(p, world), world, rank);
  };
  entry.out_count = [problem_of](const collective_problem& p, int world, int rank) {
    return Operator::out_count(problem_of(p, world), world, rank);
  };
  return entry;
}

}  // namespace untax
