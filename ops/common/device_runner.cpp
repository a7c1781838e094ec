#include "ops/common/device_runner.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax {
namespace {

constexpr std::int64_t multiple = 8;  // elements of 2 bytes
constexpr std::size_t alignment = 16;

}  // namespace

void require_device_problem(std::string_view operator_name, int rank, dtype type, std::int64_t n,
                            std::int64_t k) {
  const auto refuse = [&](const std::string& text) {
    throw error(errc::invalid_argument, fmt::format("rank {}: {}: {}", rank, operator_name, text));
  };
  if (type == dtype::f32) {
    refuse(
        "elements are fp32; on GPUs they have to be bf16 or fp16, which is what the tensor cores "
        "multiply");
  }
  const auto require_multiple = [&](std::string_view what, std::int64_t value) {
    if (value % multiple == 0) return;
    refuse(
        fmt::format("{} is {}; on GPUs it has to be a multiple of {}, so that rows begin at "
                    "multiples of 16 bytes: {} would do",
                    what, value, multiple, round_up(value, multiple)));
  };
  require_multiple("n", n);
  require_multiple("k", k);
}

device_runner::device_runner(world& w, std::string_view operator_name,
                             std::vector<operator_up_to> plans, bool rows_vary,
                             std::shared_ptr<const void> libraries)
    : world_(&w.stable_view()),
      name_(operator_name),
      arguments_(operator_name, w),
      rows_vary_(rows_vary),
      plans_(std::move(plans)),
      current_(plans_.back().op.get()),
      libraries_(std::move(libraries)) {}

device_runner::~device_runner() {
  if (!world_->unwinding()) wait_for_device(*world_);
}

void device_runner::require_usable(std::string_view what, const const_matrix& m) {
  if (m.empty()) return;
  arguments_.require_dense(what, m);
  arguments_.require(what, m.data, alignment);
}

void note_rows(world& w, std::string_view operator_name, std::int64_t rows, stream_ref stream) {
  w.check();
  if (!is_captured(stream)) w.note(operator_name, fmt::format("runs of {} rows", rows));
}

void device_runner::set_rows(std::int64_t rows, stream_ref stream) {
  if (rows == rows_) return;
  note_rows(*world_, name_, rows, stream);
  rows_ = rows;
  if (rows == 0) return;
  current_ = std::ranges::lower_bound(plans_, rows, {}, &operator_up_to::rows)->op.get();
  current_->set_rows(rows);
}

void device_runner::run(std::int64_t rows, const const_matrix& a, const const_matrix& weights,
                        const matrix& c, stream_ref stream) {
  if (rows_vary_) {
    set_rows(rows, stream);
    if (rows == 0) return;
  }
  world_->check();
  require_usable("a", a);
  require_usable("weights", weights);
  require_usable("c", as_const(c));
  const bool waits = stream.handle == nullptr;
  current_->run(a.data, weights.data, c.data, stream_.unless(stream));
  if (!waits) return;
  stream_.wait(fmt::format("rank {}: {}: a kernel failed", world_->rank(), name_));
  world_->check();
}

}  // namespace untax
