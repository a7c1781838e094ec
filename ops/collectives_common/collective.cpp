#include <untax/ops/collective.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include <untax/core/error.hpp>

#include "engines/gpu/collectives/collective_runner.hpp"
#include "engines/host/engine.hpp"
#include "ops/collectives_common/counted.hpp"
#include "ops/collectives_common/planning.hpp"
#include "ops/common/arguments.hpp"
#include "ops/common/device_arguments.hpp"
#include "ops/common/plan_agreement.hpp"
#include "ops/common/run_turns.hpp"

namespace untax {
namespace {

std::uintptr_t address(const void* p) {
  return reinterpret_cast<std::uintptr_t>(p);  // NOLINT(*-reinterpret-cast)
}

/// A caller's elements as an operand of one row.
host::operand_memory row_of(const const_array_view& e, int rank, std::int64_t between) {
  // The input is read only; the operand table holds one kind of pointer for all.
  auto* data = static_cast<std::byte*>(const_cast<void*>(e.data));  // NOLINT(*-const-cast)
  return {.base = data, .bytes_per_rank = between, .stride = e.count, .type = e.type, .rank = rank};
}

}  // namespace

collective::collective(const world& w, const collective_need& need,
                       const collective_options& options)
    : name_(need.name), type_(need.type) {
  require_count(need.name, w.rank(), "the number of elements", need.total);
  planned_collective planned =
      plan_collective(w.size(), w.rank(), need, options, w.memory(), w.ranks_per_gpu());
  plan_ = planned.plan;
  explanation_ = std::move(planned.explanation);
  if (need.total > 0) show_by(plan_, need.by_peers);
  by_peers_ = need.by_peers;
}
collective::collective(collective&&) noexcept = default;
collective& collective::operator=(collective&&) noexcept = default;
collective::~collective() = default;

void collective::start(world& w, const std::string& problem, const program& p,
                       const std::function<gpu::collective_kernel()>& kernels,
                       const collective_options& options, std::shared_ptr<const void> tables) {
  world_ = &w.stable_view();
  turns_ = make_process_owned<run_turns>(w, name_);
  tables_ = std::move(tables);
  agree_on_lines(w, name_, {fmt::format("{}, {}", name_of(type_), problem), fields_of(plan_)});
  if (w.memory() == memory_kind::cuda) {
    usable_ = std::make_unique<device_arguments>(name_, w);
    device_runner_ = make_process_owned<gpu::collective_runner>(w, std::string(name_), kernels());
    // No rank may run while another one still allocates or loads kernels.
    w.agree(name_, "made");
    return;
  }
  engine_ = make_process_owned<host::engine>(
      w, p, host::engine_options{std::string(name_), type_, type_, options.launch, options.faults});
}

void collective::start(world& w, const std::string& problem, const counted_programs& counted,
                       const collective_options& options) {
  world_ = &w.stable_view();
  turns_ = make_process_owned<run_turns>(w, name_);
  plans_ = counted.plans;
  std::string text = fmt::format("{}, any {}, {}", name_of(type_), problem, fields_of(plan_));
  for (const std::int64_t end : plans_->ends())
    text += fmt::format(", up to {}: {}", end, fields_of(plans_->at(end)));
  w.agree(name_, text);
  explanation_ +=
      fmt::format(", any count up to {} by {} plans", plans_->capacity(), plans_->ends().size());
  if (w.memory() == memory_kind::cuda) {
    // Peers may access other memory in runs of other counts.
    for (const std::int64_t end : plans_->ends()) show_by(plans_->at(end), by_peers_);
    usable_ = std::make_unique<device_arguments>(name_, w);
    device_runners_ = make_process_owned<counted_runners>(w, std::string(name_), counted);
    w.agree(name_, "made");
    return;
  }
  engine_ =
      make_process_owned<host::engine>(w, counted.programs,
                                       host::engine_options{std::string(name_), type_, type_,
                                                            options.launch, options.faults, type_});
}

std::int64_t collective::count_of_run(std::string_view what, std::int64_t given,
                                      std::int64_t planned) const {
  if (!plans_) return planned;
  if (given >= 0 && given <= planned) return given;
  throw error(
      errc::invalid_argument,
      fmt::format("rank {}: {}: {} makes the count {}; this collective was planned for 0 to "
                  "{}",
                  plan_.rank, name_, what, given, planned));
}

const collective_plan& collective::plan_of_run(std::int64_t count) const {
  return plans_ && count > 0 ? plans_->at(count) : plan_;
}

void collective::check(std::string_view what, const const_array_view& given,
                       std::int64_t count) const {
  argument_check{name_, plan_.rank}.is_whole(engine_ || on_device());
  const auto refuse = [&](const std::string& text) {
    throw error(errc::invalid_argument,
                fmt::format("rank {}: {}: {} {}", plan_.rank, name_, what, text));
  };
  if (given.count != count)
    refuse(fmt::format("has {} elements; this problem needs {}", given.count, count));
  if (count == 0) return;
  if (given.type != type_)
    refuse(fmt::format("is {}; this problem needs {}", name_of(given.type), name_of(type_)));
  if (given.data == nullptr) refuse(fmt::format("is null; it has to hold {} elements", count));
  if (address(given.data) % size_of(type_) != 0) {
    refuse(fmt::format("lies at {}; elements of {} bytes have to be aligned to their size",
                       fmt::ptr(given.data), size_of(type_)));
  }
}

void collective::check_apart(const const_array_view& in, const array_view& out,
                             const in_place& allowed) const {
  const auto from = address(in.data);
  const auto to = address(out.data);
  if (in.count == 0 || out.count == 0) return;
  if (from >= to + out.size_bytes() || to >= from + in.size_bytes()) return;
  const auto offset =
      static_cast<std::intptr_t>(allowed.at) * static_cast<std::intptr_t>(size_of(type_));
  if (allowed.possible && static_cast<std::intptr_t>(from - to) == offset) return;
  throw error(errc::invalid_argument,
              fmt::format("rank {}: {}: input and result share memory at {}; they have to lie "
                          "apart{}",
                          plan_.rank, name_, fmt::ptr(from > to ? in.data : out.data),
                          allowed.possible ? ", or in place, element for element" : ""));
}

void collective::agree_on(const const_array_view& in, const array_view& out, stream_ref stream) {
  const void* const shown_in = shows_input_ ? in.data : nullptr;
  const void* const shown_out = shows_result_ ? out.data : nullptr;
  // A capture cannot contain a wait for other ranks, and a captured run is replayed many times.
  const bool captured = captures(stream);
  if (const auto known = agreed_.find({shown_in, shown_out}); known != agreed_.end()) {
    // Another rank may know these addresses, too, but pass others this time: the ledger shows that.
    if (!captured) world_->note(name_, known->second);
    return;
  }
  const auto offset_of = [&](std::string_view what, bool shown, const void* p,
                             std::size_t bytes) -> std::string {
    if (!shown) return "";
    if (world_->owner_of(p, std::max<std::size_t>(bytes, 1)) != plan_.rank) {
      throw error(errc::not_symmetric,
                  fmt::format("rank {}: {}: {} at {}, of {} bytes, does not lie in this rank's "
                              "symmetric heap, but option direct lets all ranks touch it; pass "
                              "memory from world.allocate, or leave the option out",
                              plan_.rank, name_, what, fmt::ptr(p), bytes));
    }
    return fmt::format(", {} at offset {}", what, world_->heap().offset_of(p));
  };
  const std::string offsets = offset_of("in", shows_input_, in.data, in.size_bytes()) +
                              offset_of("out", shows_result_, out.data, out.size_bytes());
  if (plan_.world > 1) {
    const auto* mine = static_cast<const std::byte*>(shows_result_ ? out.data : in.data);
    between_ = (world_->translate(mine, plan_.rank > 0 ? 0 : 1) - mine) /
               (plan_.rank > 0 ? -plan_.rank : 1);
  }
  if (captured) return;
  world_->agree(name_, "direct" + offsets);
  agreed_.emplace(std::pair(shown_in, shown_out), "direct" + offsets);
}

void collective::show_by(const collective_plan& plan, touched by_peers) {
  if (!plan.direct) return;
  if (by_peers != touched::result && !plan.pushes) shows_input_ = true;
  // Each rank makes a combination in one phase for itself.
  const bool combined_here = by_peers == touched::both && plan.phases == 1;
  if (by_peers != touched::input && !combined_here) shows_result_ = true;
}

bool collective::captures(stream_ref stream) const {
  return device_runner_    ? device_runner_->captures(stream)
         : device_runners_ ? device_runners_->captures(stream)
                           : false;
}

void collective::run_on_device(const void* in, void* out, std::int64_t count, stream_ref stream) {
  if (count > 0) {
    usable_->require("in", in);
    usable_->require("out", out);
  }
  if (device_runner_) return device_runner_->run(in, out, between_, stream);
  if (count != last_count_) {
    world_->check();
    if (!captures(stream)) world_->note(name_, fmt::format("runs of {} elements", count));
    last_count_ = count;
  }
  if (count > 0) device_runners_->for_count(count).run(in, out, between_, stream);
}

void collective::carry_out(const const_array_view& in, const array_view& out, std::int64_t count,
                           stream_ref stream) {
  if (!on_device()) argument_check{name_, plan_.rank}.no_stream(stream);
  (*turns_)(stream, [&] { take_turn(in, out, count, stream); });
}

void collective::take_turn(const const_array_view& in, const array_view& out, std::int64_t count,
                           stream_ref stream) {
  if (shows_input_ || shows_result_) agree_on(in, out, stream);
  if (on_device()) return run_on_device(in.data, out.data, count, stream);
  host::operand_table operands;
  operands[operand::a] = row_of(in, plan_.rank, between_);
  operands[operand::c] = row_of(as_const(out), plan_.rank, between_);
  if (plans_) return engine_->run(operands, count);
  engine_->run(operands);
}

}  // namespace untax
