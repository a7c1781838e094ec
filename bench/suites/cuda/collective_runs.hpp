#pragma once

#include <functional>
#include <memory>
#include <string>

#include <untax/core/stream_ref.hpp>
#include <untax/world/world.hpp>

#include "bench/suites/collectives.hpp"
#include "engines/bulk/communicator.hpp"

namespace untax::bench {

/// One collective on one size, to be run again and again on the same device memory.
struct collective_work {
  collective_kind kind;
  std::int64_t bytes;
  dtype type;
  void* in;
  void* out;
};

/// A planned run at one rank.
struct planned_run {
  std::function<void(stream_ref)> run;
  std::string explanation;
};

/// The elements of the vector: a multiple of the ranks, which NCCL needs.
[[nodiscard]] std::int64_t elements_of(const collective_work& work, int ranks);
/// The elements of the result of a rank.
[[nodiscard]] std::int64_t result_of(const collective_work& work, int ranks);

/// Plans untax's operator. Collective. Throws the errors of its constructor.
[[nodiscard]] planned_run plan_untax(world& w, const collective_work& work,
                                     const collective_options& options);
/// Plans the same collective by NCCL. `c` has to outlive the result.
[[nodiscard]] planned_run plan_library(bulk::communicator& c, int ranks,
                                       const collective_work& work);

}  // namespace untax::bench
