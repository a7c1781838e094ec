#include <untax/sparse/spmv.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include "src/sparse/instantiate.hpp"
#include "src/sparse/kernel.hpp"

namespace untax::sparse {
namespace {

constexpr int most_threads = 1024;
/// Small matrices may be padded as they like.
constexpr std::int64_t padded_freely = 1 << 16;

template <class Value, class Offset>
void require_padding(const csr_view<Value, Offset>& m) {
  std::int64_t longest = 0;
  for (std::size_t r = 0; r + 1 < m.offsets.size(); ++r)
    longest = std::max<std::int64_t>(longest, m.offsets[r + 1] - m.offsets[r]);
  const double padded = static_cast<double>(longest) * static_cast<double>(m.rows);
  if (padded <= padded_freely || padded <= most_padding * static_cast<double>(m.size())) return;
  throw error(
      errc::unsupported,
      fmt::format("ELL would store {:.3g} elements for {}, since the longest of {} rows has "
                  "{}; it may store {:.0f} times as many",
                  padded, m.size(), m.rows, longest, most_padding));
}

template <class Value, class Offset>
std::unique_ptr<kernel<Value>> made(const csr_view<Value, Offset>& m, spmv_kernel which) {
  switch (which) {
    case spmv_kernel::csr_rows:
      return make_csr_rows(m);
    case spmv_kernel::csr_adaptive:
      return make_csr_adaptive(m);
    case spmv_kernel::csr_merge_path:
      return make_csr_merge_path(m);
    case spmv_kernel::csr_balanced:
      return make_csr_balanced(m);
    case spmv_kernel::coo:
      return make_coo(m);
    case spmv_kernel::ell:
      require_padding(m);
      return make_ell(m);
    case spmv_kernel::sellp:
      return make_sellp(m);
  }
  throw error(errc::internal, "no such kernel");
}

int checked(int threads) {
  if (threads >= 1 && threads <= most_threads) return threads;
  throw error(errc::invalid_argument,
              fmt::format("spmv by {} threads; it takes 1 to {}", threads, most_threads));
}

}  // namespace

std::string_view name_of(spmv_kernel kernel) noexcept {
  constexpr std::array<std::string_view, all_spmv_kernels.size()> names = {
      "csr_rows", "csr_adaptive", "csr_merge_path", "csr_balanced", "coo", "ell", "sellp"};
  return names[static_cast<std::size_t>(kernel)];
}

bool is_reproducible(spmv_kernel kernel) noexcept {
  return kernel != spmv_kernel::csr_merge_path && kernel != spmv_kernel::csr_balanced &&
         kernel != spmv_kernel::coo;
}

template <class Value, class Offset>
struct spmv<Value, Offset>::state {
  std::int64_t rows;
  std::int64_t cols;
  spmv_kernel which;
  int threads;
  host::team team;
  double setup_seconds = 0;
  std::unique_ptr<kernel<Value>> work;

  state(const csr_view<Value, Offset>& matrix, spmv_kernel kernel, int count)
      : rows(matrix.rows),
        cols(matrix.cols),
        which(kernel),
        threads(checked(count)),
        team(threads, launch_mode::graph, "spmv", [](const error&) {}) {}
};

template <class Value, class Offset>
spmv<Value, Offset>::spmv(const csr_view<Value, Offset>& matrix, spmv_kernel kernel, int threads) {
  require_valid(matrix);
  state_ = std::make_unique<state>(matrix, kernel, threads);
  const auto begin = std::chrono::steady_clock::now();
  state_->work = made(matrix, kernel);
  state_->setup_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
template <class Value, class Offset>
spmv<Value, Offset>::~spmv() = default;
template <class Value, class Offset>
spmv<Value, Offset>::spmv(spmv&&) noexcept = default;
template <class Value, class Offset>
spmv<Value, Offset>& spmv<Value, Offset>::operator=(spmv&&) noexcept = default;

template <class Value, class Offset>
void spmv<Value, Offset>::run(Value alpha, std::span<const Value> x, Value beta,
                              std::span<Value> y) {
  if (std::ssize(x) != state_->cols || std::ssize(y) != state_->rows) {
    throw error(
        errc::invalid_argument,
        fmt::format("spmv of {} x {}: x has {} elements and y {}; {} and {} are right",
                    state_->rows, state_->cols, x.size(), y.size(), state_->cols, state_->rows));
  }
  state_->work->run({state_->team, state_->threads, alpha, x, beta, y});
}

template <class Value, class Offset>
double spmv<Value, Offset>::setup_seconds() const noexcept {
  return state_->setup_seconds;
}
template <class Value, class Offset>
spmv_kernel spmv<Value, Offset>::which() const noexcept {
  return state_->which;
}

#define UNTAX_SPMV(Value, Offset) template class spmv<Value, Offset>;
UNTAX_SPARSE_TYPES(UNTAX_SPMV)
#undef UNTAX_SPMV

}  // namespace untax::sparse
