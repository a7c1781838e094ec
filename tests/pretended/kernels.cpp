// Stand-ins for the kernels that builds without CUDA refuse (src/ops/no_cuda). They record which
// kernels operators launch in worlds of GPUs, and with which arguments of a run.
#include "tests/pretended/kernels.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/world/launch.hpp>

#include "engines/gpu/collectives/collective_runner.hpp"
#include "engines/product/product.hpp"
#include "ops/all_gather_gemm/device_plan.hpp"
#include "ops/all_reduce_norm/device.hpp"
#include "ops/choice/gemm_timer.hpp"
#include "ops/collectives_common/device_code.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/common/own_stream.hpp"
#include "ops/gemm_all_scatter/device_plan.hpp"
#include "ops/gemm_reduce_common/device.hpp"
#include "ops/merge_partial_attention/backend.hpp"
#include "src/symmetric/stream_order.hpp"

namespace pretended {
namespace {

thread_local lines notes;
thread_local const void* unreachable = nullptr;
thread_local std::string failure;
thread_local int launches_before_failure = 0;
thread_local int begun = 0;
thread_local int ended = 0;
int streams[2];

}  // namespace

void on_gpus(int ranks, const std::function<void(untax::world&)>& body) {
  untax::world_options options;
  options.heap_bytes = std::size_t{8} << 20;
  options.wait_limit = std::chrono::seconds(100);
  untax::run_gpus(
      ranks,
      [&](untax::world& w) {
        (void)noted();
        body(w);
      },
      options);
}

lines noted() { return std::exchange(notes, {}); }
std::string text_of(const void* p) { return fmt::format("{}", fmt::ptr(p)); }

untax::stream_ref a_stream() {
  untax::stream_ref s;
  s.handle = &streams[0];
  return s;
}
untax::stream_ref captured_stream() {
  untax::stream_ref s;
  s.handle = &streams[1];
  return s;
}

void put_out_of_reach(const void* p) { unreachable = p; }
void fail_next(const std::string& why) {
  failure = why;
  launches_before_failure = 0;
}
void fail_second(const std::string& why) {
  failure = why;
  launches_before_failure = 1;
}

lines told(untax::world& w, std::uint64_t& from) {
  lines calls;
  const std::uint64_t last = w.state().posted(w.rank());
  while (from < last) {
    const auto line = w.state().posted_at(w.rank(), ++from);
    calls.push_back(line ? line->text : "(lost)");
  }
  return calls;
}

int runs_in_order() {
  EXPECT_EQ(begun, ended);
  ended = 0;
  return std::exchange(begun, 0);
}

namespace {

void note(std::string text) { notes.push_back(std::move(text)); }

std::string stream_text(untax::stream_ref s) {
  if (s.handle == a_stream().handle) return "a stream";
  return s.handle == captured_stream().handle ? "a capture"
         : s.handle == nullptr                ? "none"
                                              : "its own stream";
}

std::string options_text(const untax::operator_options& o) {
  return fmt::format("{}, {}, workers {}, senders {}, phases {}{}{}{}", name_of(o.how),
                     name_of(o.move), o.workers, o.senders, o.phases,
                     o.varying_rows ? ", rows vary" : "", o.invariant ? ", invariant" : "",
                     o.constant_weights ? ", constant weights" : "");
}

void launch(const std::string& what) {
  if (launches_before_failure > 0) {
    --launches_before_failure;
  } else if (const std::string why = std::exchange(failure, ""); !why.empty()) {
    throw untax::error(untax::errc::internal, why);
  }
  note(what);
}

class noting final : public untax::device_operator {
 public:
  noting(untax::world& w, std::string name, untax::pattern how)
      : device_operator(w), name_(std::move(name)), how_(how) {}
  noting(const noting&) = delete;
  noting& operator=(const noting&) = delete;
  ~noting() override { note(name_ + " ends"); }

  void run(const void* a, const void* weights, void* c, untax::stream_ref stream) override {
    launch(fmt::format("{} runs {} {} {} on {}", name_, text_of(a), text_of(weights), text_of(c),
                       stream_text(stream)));
  }
  void set_rows(std::int64_t rows) override { note(fmt::format("{} gets {} rows", name_, rows)); }
  [[nodiscard]] untax::pattern how() const override { return how_; }
  [[nodiscard]] std::string text() const override { return "pretended " + name_; }

 private:
  std::string name_;
  untax::pattern how_;
};

std::unique_ptr<untax::device_operator> make(untax::world& w, const std::string& name,
                                             const std::string& problem, untax::pattern how) {
  note(fmt::format("make {}: {}", name, problem));
  return std::make_unique<noting>(w, name, how);
}

class noting_norm final : public untax::device_norm {
 public:
  noting_norm() = default;
  noting_norm(const noting_norm&) = delete;
  noting_norm& operator=(const noting_norm&) = delete;
  ~noting_norm() override { note("norm ends"); }
  void set_tokens(std::int64_t tokens) override { note(fmt::format("norm gets {}", tokens)); }
  void run(const untax::norm_inputs& in, const untax::norm_results& to,
           untax::stream_ref stream) override {
    launch(fmt::format("norm runs {} {} {} scale {} to {} {} {} on {}", text_of(in.in.data),
                       text_of(in.residual.data), text_of(in.weight), in.scale, text_of(to.x),
                       text_of(to.out), text_of(to.scales), stream_text(stream)));
  }
};

class noting_merge final : public untax::merge_backend {
 public:
  noting_merge() = default;
  noting_merge(const noting_merge&) = delete;
  noting_merge& operator=(const noting_merge&) = delete;
  ~noting_merge() override { note("merge ends"); }
  void run(const untax::const_matrix& o, const untax::const_matrix& lse, const untax::matrix& out,
           const untax::matrix& out_lse, untax::stream_ref stream) override {
    launch(fmt::format("merge runs {} {} to {} {}, {} tokens, on {}", text_of(o.data),
                       text_of(lse.data), text_of(out.data), text_of(out_lse.data), lse.rows,
                       stream_text(stream)));
  }
};

std::string norm_text(const untax::all_reduce_norm_problem& p, const untax::shown_results& shown) {
  return fmt::format("tokens {}, hidden {}, {}, {}, to {} {} {}, {} apart", p.tokens, p.hidden,
                     name_of(p.type), name_of(p.output), text_of(shown.own.x),
                     text_of(shown.own.out), text_of(shown.own.scales), shown.between);
}

}  // namespace
}  // namespace pretended

namespace untax {

std::unique_ptr<device_operator> all_gather_gemm_on_device(world& w,
                                                           const all_gather_gemm_problem& p,
                                                           const operator_options& options,
                                                           gpu::room_pool* /*rooms*/) {
  return pretended::make(w, fmt::format("gather of {}", p.m),
                         fmt::format("m {}, n {}, k {}, {}, {}, {}", p.m, p.n, p.k, name_of(p.type),
                                     name_of(p.gather), pretended::options_text(options)),
                         options.how);
}
std::unique_ptr<device_operator> gemm_all_scatter_on_device(world& w,
                                                            const gemm_all_scatter_problem& p,
                                                            const operator_options& options,
                                                            std::int64_t between,
                                                            gpu::room_pool* /*rooms*/) {
  return pretended::make(w, fmt::format("scatter of {}", p.m),
                         fmt::format("m {}, n {}, k {}, {}, {} apart, {}", p.m, p.n, p.k,
                                     name_of(p.type), between, pretended::options_text(options)),
                         options.how);
}
process_owned<device_norm> all_reduce_norm_on_device(world& /*w*/, const all_reduce_norm_problem& p,
                                                     int phases, const shown_results& results) {
  pretended::note(
      fmt::format("make norm: {}, phases {}", pretended::norm_text(p, results), phases));
  return process_owned<device_norm>(new pretended::noting_norm);
}
process_owned<device_norm> all_reduce_norm_for_any_tokens(world& /*w*/,
                                                          const all_reduce_norm_problem& p,
                                                          const row_plans& plans,
                                                          const shown_results& results) {
  std::string phases;
  for (const std::int64_t end : plans.ends())
    phases += fmt::format(", {} in {}", end, plans.at(end).phases);
  pretended::note(fmt::format("make norm: any of {}{}", pretended::norm_text(p, results), phases));
  return process_owned<device_norm>(new pretended::noting_norm);
}
process_owned<merge_backend> merge_on_device(world& /*w*/, const merge_partial_attention_problem& p,
                                             const merge_partial_attention_plan& plan,
                                             bool varying_tokens) {
  pretended::note(fmt::format("make merge: tokens {}{}, heads {} x {}, {}, rank {} of {}, {}",
                              p.tokens, varying_tokens ? " at most" : "", p.heads, p.head_dim,
                              name_of(p.type), plan.rank, plan.world, name_of(plan.how)));
  return process_owned<merge_backend>(new pretended::noting_merge);
}
std::unique_ptr<device_operator> sums_on_device(world& w, const device_sum& s,
                                                const operator_options& options,
                                                const symmetric_result& result,
                                                gpu::room_pool* /*rooms*/) {
  return pretended::make(
      w, fmt::format("sums of {}", s.m),
      fmt::format("{}, m {}, n {}, k {}, {}, {}, {}, phases {}, to {}, {} apart, {}",
                  s.operator_name, s.m, s.n, s.k, name_of(s.type), name_of(s.partials),
                  s.target == reduce_target::owner ? "owner" : "everywhere", s.phases,
                  pretended::text_of(result.data), result.between,
                  pretended::options_text(options)),
      options.how);
}
std::unique_ptr<device_operator> lonely_sum_on_device(world& w, const device_sum& s, pattern how) {
  return pretended::make(w, fmt::format("lonely sum of {}", s.m),
                         fmt::format("{}, m {}, n {}, k {}", s.operator_name, s.m, s.n, s.k), how);
}

operator_timer gemm_timer(world& /*w*/, const operator_entry& /*entry*/,
                          const gemm_problem& /*problem*/, void* /*result*/) {
  return {};  // what is pretended takes no time
}

own_stream::own_stream() : kept_(std::make_shared<int>()) {
  stream_.handle = const_cast<void*>(kept_.get());
}
stream_ref own_stream::unless(stream_ref given) const {
  return given.handle != nullptr ? given : stream_;
}
void wait_for(stream_ref stream, std::string_view what) {
  pretended::note(fmt::format("wait for {}: {}", pretended::stream_text(stream), what));
}
bool is_captured(stream_ref stream) { return stream.handle == pretended::captured_stream().handle; }
bool reachable_by_device(const void* p) {
  pretended::note("ask for " + pretended::text_of(p));
  return p != pretended::unreachable;
}
std::uint64_t allocation_at(const void* p) { return p == pretended::unreachable ? 0 : 1; }

struct stream_order::state {};
stream_order::stream_order() = default;
void stream_order::begin(stream_ref /*stream*/) const { ++pretended::begun; }
void stream_order::end(stream_ref /*stream*/) const { ++pretended::ended; }

void wait_for_device(const world& w) noexcept {
  pretended::note(fmt::format("wait for GPU {}", w.device()));
}

gpu::collective_kernel exchange_code(const gpu::message_table& /*messages*/, dtype type,
                                     const collective_plan& plan) {
  gpu::collective_kernel code;
  code.first_argument = gpu::kernel_argument(plan.chunk);
  code.text =
      fmt::format("exchange of {}, {}, {}", name_of(type), name_of(plan.how), name_of(plan.wire));
  return code;
}
gpu::collective_kernel reduction_code(std::int64_t count, dtype type, reduction how,
                                      reduce_target target, const collective_plan& plan) {
  gpu::collective_kernel code;
  code.first_argument = gpu::kernel_argument(count);
  code.text = fmt::format("reduction of {} {} by {}, {}, {}{}", count, name_of(type), name_of(how),
                          target == reduce_target::owner ? "owner" : "everywhere",
                          name_of(plan.how), plan.direct ? ", direct" : "");
  return code;
}
gpu::collective_kernel relay_code(std::int64_t count, dtype type, int root,
                                  const collective_plan& /*plan*/) {
  gpu::collective_kernel code;
  code.first_argument = gpu::kernel_argument(count);
  code.text = fmt::format("relay of {} {} from {}", count, name_of(type), root);
  return code;
}

namespace gpu {

class collective_runner::launcher {
 public:
  std::string name;
};

collective_runner::collective_runner(world& /*w*/, const std::string& name,
                                     collective_kernel&& code, room_pool* /*rooms*/)
    : launcher_(std::make_unique<launcher>()) {
  launcher_->name = code.text;
  pretended::note(fmt::format("make {}: {}", name, code.text));
}
collective_runner::~collective_runner() { pretended::note(launcher_->name + " ends"); }

void collective_runner::set_argument(kernel_argument&& first) {
  std::int64_t count = 0;
  if (first.size() == sizeof count) std::memcpy(&count, first.data(), sizeof count);
  pretended::note(fmt::format("{} gets {}", launcher_->name, count));
}
bool collective_runner::captures(stream_ref stream) const { return is_captured(stream); }
void collective_runner::run(const void* in, void* out, std::int64_t between, stream_ref stream) {
  pretended::launch(fmt::format("{} runs {} {}, {} apart, on {}", launcher_->name,
                                pretended::text_of(in), pretended::text_of(out), between,
                                pretended::stream_text(stream)));
}

}  // namespace gpu

class product::state {
 public:
  std::string name;
};

product::product(const product_shape& s) : product(s, {s.m}) {}
product::product(const product_shape& s, const std::vector<std::int64_t>& ends, std::int64_t least)
    : state_(std::make_unique<state>()) {
  state_->name = fmt::format("product of {}", s.m);
  pretended::note(fmt::format("make {}: {} plans, above {} rows, n {}, k {}, {} to {}{}{}, {} {}",
                              state_->name, ends.size(), least, s.n, s.k, name_of(s.type),
                              name_of(s.result), s.invariant ? ", invariant" : "",
                              s.constant_weights ? ", constant weights" : "", s.sharing,
                              s.sharing == 1 ? "rank" : "ranks"));
}
product::product(product&&) noexcept = default;
product& product::operator=(product&&) noexcept = default;
product::~product() {
  if (state_) pretended::note(state_->name + " ends");
}
void product::set_rows(std::int64_t rows) {
  pretended::note(fmt::format("{} gets {} rows", state_->name, rows));
}
void product::run(const void* a, const void* b, void* c, stream_ref stream) const {
  pretended::launch(fmt::format("{} runs {} {} {} on {}", state_->name, pretended::text_of(a),
                                pretended::text_of(b), pretended::text_of(c),
                                pretended::stream_text(stream)));
}
std::string product::text() const { return "pretended " + state_->name; }

}  // namespace untax
