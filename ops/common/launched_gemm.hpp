#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <untax/ops/options.hpp>
#include <untax/world/world.hpp>

#include "engines/gpu/gemm/config.hpp"
#include "engines/gpu/gemm/launcher.hpp"
#include "engines/gpu/rooms/operator_host.hpp"
#include "ops/common/device_operator.hpp"

namespace untax {

/// The start of an operator's GEMM. In bulk_synchronous it reads nothing before its phase. If all
/// tiles wait for chunks of A from all ranks, fewer weights are read early.
[[nodiscard]] inline gpu::kernel_start start_of(const world& w, const operator_options& options,
                                                bool wait_for_chunks) {
  gpu::kernel_start start{.early = w.ranks_per_gpu() == 1};
  if (options.constant_weights && options.how != pattern::bulk_synchronous)
    start.stages = wait_for_chunks ? gpu::loaded_before_moving : 6;
  return start;
}

/// A GEMM operator in a pattern of own kernels. `Launches` is the part that is the operator's own,
/// a class with
///
///   int side_streams() const            beside the caller's stream
///   void allocate(operator_host&, room_pool*)
///                                       memory, and the arguments of the kernels; collective
///   void launch_dry(cudaStream_t)       every kernel, such that it does nothing
///   const Plan& plan() const            with `text()`
///   std::int64_t rows() const           of the next runs
///   void set_rows(std::int64_t)         arguments for this many rows
///   gemm_operands bind(const void* a, const void* weights, void* c)
///                                       makes the caller's matrices arguments; returns those that
///                                       tensor maps describe
///   void describe(const gemm_operands&) makes the tensor maps of what `bind` returned
///   void launch(void* c, whole_run&, cudaStream_t)
///                                       the kernels of a run, on the matrices that were bound
///
/// Maps are described again only where matrices or rows have changed.
template <class Launches>
class launched_gemm final : public device_operator {
 public:
  /// Collective, the same `name` at all ranks. `rooms`: those of the operator's other plans, or
  /// null. `Launches` is made from the world and the other arguments.
  template <class... Arguments>
  launched_gemm(world& w, std::string_view name, pattern how, gpu::room_pool* rooms,
                Arguments&&... arguments)
      : device_operator(w),
        name_(name),
        how_(how),
        launches_(w, std::forward<Arguments>(arguments)...),
        host_(w, name, {.side = launches_.side_streams()}) {
    host_.launcher().require_at_most(gpu::most_ranks);
    launches_.allocate(host_, rooms);
    host_.launcher().dry_run([&](cudaStream_t stream) { launches_.launch_dry(stream); });
  }

  void run(const void* a, const void* weights, void* c, stream_ref stream) override {
    host_.run(stream, [&](gpu::whole_run& run, cudaStream_t on) {
      if (const gemm_operands needed = launches_.bind(a, weights, c); needed != described_) {
        launches_.describe(needed);
        described_ = needed;
      }
      launches_.launch(c, run, on);
    });
  }

  void set_rows(std::int64_t rows) override {
    if (rows == launches_.rows()) return;
    launches_.set_rows(rows);
    described_ = {};
  }

  void forget_captures() noexcept override { host_.forget_captures(); }

  [[nodiscard]] pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override {
    return fmt::format("{}: {}, {}", name_, name_of(how_), launches_.plan().text());
  }

 private:
  std::string name_;
  pattern how_;
  Launches launches_;
  gemm_operands described_;  // by tensor maps
  gpu::operator_host host_;  // destroyed first
};

}  // namespace untax
