#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "engines/gpu/launch/common_end.hpp"
#include "engines/gpu/launch/this_gpu.hpp"
#include "engines/gpu/merge/merge_rows.hpp"
#include "engines/gpu/rooms/operator_host.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/common/device_runner.hpp"
#include "ops/merge_partial_attention/backend.hpp"
#include "ops/merge_partial_attention/device_plan.hpp"
#include "ops/merge_partial_attention/planning.hpp"

namespace untax {
namespace {

constexpr auto name = merge_partial_attention_name;
constexpr double log2_of_e = 1.44269504088896340736;

class device_merge final : public merge_backend {
 public:
  device_merge(world& w, const merge_partial_attention_problem& problem, const merge_grid& planned,
               bool varying)
      : end_(w),
        problem_(problem),
        varying_(varying),
        host_(w, name, {.own = true}),
        usable_(name, w),
        kernel_(gpu::merge_kernel_for(problem.type, w.size())),
        blocks_(planned.blocks) {
    host_.launcher().require_at_most(gpu::most_ranks);
    require_room();
    const gpu::merge_rows& how = planned.how;
    given_.how = how;
    given_.run = host_.allocate(
        {.element_bytes = static_cast<int>(size_of(problem.type)),
         .threads = kernel_.threads,
         .inbox = {{static_cast<std::size_t>(how.inbox_bytes()), gpu::room_content::words}},
         .counters = static_cast<std::size_t>(how.counters()),
         .own_words = blocks_ + 1},
        nullptr);
    given_.done = given_.run.epochs + blocks_;
    given_.to_base_2 = problem.log2 ? 1 : static_cast<float>(log2_of_e);
    given_.from_base_2 = problem.log2 ? 1 : static_cast<float>(1 / log2_of_e);
    host_.launcher().prepare(kernel_.function, 0);
    host_.launcher().dry_run([&](cudaStream_t on) {
      gpu::merge_arguments dry = given_;
      dry.run.launch = -1;
      launch(dry, on);
    });
  }

  void run(const const_matrix& partial_o, const const_matrix& partial_lse, const matrix& out,
           const matrix& lse, stream_ref stream) override {
    if (varying_) set_tokens(partial_lse.rows, stream);
    if (given_.how.tokens == 0) return;
    check(partial_o, partial_lse, out, lse);
    host_.run(stream, [&](gpu::whole_run& run, cudaStream_t on) {
      const std::int64_t chunk = chunk_elements(problem_.type);
      given_.run.in = static_cast<const std::byte*>(partial_o.data);
      given_.run.out = static_cast<std::byte*>(out.data);
      given_.in_stride = partial_o.stride / chunk;
      given_.out_stride = out.stride / chunk;
      given_.in_lse = static_cast<const float*>(partial_lse.data);
      given_.out_lse = static_cast<float*>(lse.data);
      given_.in_lse_stride = partial_lse.stride;
      given_.out_lse_stride = lse.stride;
      run([&] { launch(given_, on); });
    });
  }

 private:
  [[nodiscard]] world& ranks() const { return host_.launcher().ranks(); }

  /// Blocks wait for blocks of peers, so all have to be resident at the same time.
  void require_room() const {
    const int num_sms = gpu::num_sms_of(ranks());
    if (blocks_ <= num_sms) return;
    refuse(
        fmt::format("{} blocks are asked for; this GPU holds {} at once, option workers has to "
                    "be smaller",
                    blocks_, num_sms));
  }

  void set_tokens(std::int64_t tokens, stream_ref stream) {
    const auto now = static_cast<int>(tokens);
    if (now == told_) return;
    note_rows(ranks(), name, tokens, stream);
    told_ = given_.how.tokens = now;
  }

  void check(const const_matrix& partial_o, const const_matrix& partial_lse, const matrix& out,
             const matrix& lse) {
    const argument_check arguments{name, given_.how.own_rank};
    for (const const_matrix& result : {as_const(out), as_const(lse)}) {
      arguments.apart("partial_o", partial_o, result);
      arguments.apart("partial_lse", partial_lse, result);
    }
    constexpr std::size_t bytes = gpu::merge_rows::chunk_bytes;
    usable_.require_rows("partial_o", partial_o, bytes);
    usable_.require_rows("out", as_const(out), bytes);
    usable_.require("partial_lse", partial_lse.data);
    usable_.require("lse", lse.data);
  }
  [[noreturn]] void refuse(const std::string& text) const {
    throw error(errc::invalid_argument, fmt::format("rank {}: {}: {}", ranks().rank(), name, text));
  }

  void launch(const gpu::merge_arguments& given, cudaStream_t on) const {
    gpu::merge_arguments passed = given;
    void* arguments[] = {&passed};
    host_.launcher().launch({kernel_.function, blocks_, kernel_.threads, 0, true}, on, arguments);
  }

  gpu::common_end end_;
  merge_partial_attention_problem problem_;
  bool varying_;
  int told_ = -1;  ///< the number of tokens in the ledger, where they vary
  gpu::merge_arguments given_;
  gpu::operator_host host_;
  device_arguments usable_;
  gpu::merge_kernel kernel_;
  int blocks_;
};

}  // namespace

process_owned<merge_backend> merge_on_device(world& w,
                                             const merge_partial_attention_problem& problem,
                                             const merge_partial_attention_plan& plan,
                                             bool varying_tokens) {
  return make_process_owned<device_merge>(
      w, problem, merge_grid_of(problem, w.size(), w.rank(), plan.workers, gpu::num_sms_of(w)),
      varying_tokens);
}

}  // namespace untax
