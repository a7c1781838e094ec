#include <untax/sparse/spmv.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "engines/host/sparse/kernel.hpp"
#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

constexpr int most_threads = 1024;

template <class Value, class Offset>
std::unique_ptr<kernel<Value>> made(const csr_view<Value, Offset>& m, spmv_kernel which) {
  switch (which) {
    case spmv_kernel::csr_thread:
      return make_csr_thread(m);
    case spmv_kernel::csr_warp2:
    case spmv_kernel::csr_warp4:
    case spmv_kernel::csr_warp8:
    case spmv_kernel::csr_warp16:
    case spmv_kernel::csr_warp32:
    case spmv_kernel::csr_mixed4:
    case spmv_kernel::csr_mixed16:
    case spmv_kernel::csr_block:
      return make_csr_lanes(m, way_of(which));
    case spmv_kernel::csr_adaptive:
      return make_csr_adaptive(m);
    case spmv_kernel::csr_merge_path:
      return make_csr_merge_path(m);
    case spmv_kernel::csr_balanced:
      return make_csr_balanced(m);
    case spmv_kernel::coo:
      return make_coo(m);
    case spmv_kernel::ell:
      return make_ell(m);
    case spmv_kernel::sellp:
      return make_sellp(m);
    case spmv_kernel::cusparse_csr1:
    case spmv_kernel::cusparse_csr2:
    case spmv_kernel::cusparse_coo:
    case spmv_kernel::cusparse_sell:
      throw error(errc::unsupported,
                  fmt::format("{} is a kernel of cuSPARSE, which needs a GPU", name_of(which)));
  }
  throw error(errc::internal, "no such kernel");
}

int checked(int threads) {
  if (threads >= 1 && threads <= most_threads) return threads;
  throw error(errc::invalid_argument, fmt::format("the number of threads is {}; spmv takes 1 to {}",
                                                  threads, most_threads));
}

}  // namespace

template <class Value, class Offset>
struct spmv<Value, Offset>::state {
  std::int64_t rows;
  std::int64_t cols;
  spmv_kernel which;
  int threads;
  host::team team;
  std::uint64_t generation = process_generation();
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
  state_ = make_process_owned<state>(matrix, kernel, threads);
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
        fmt::format("spmv of {} x {}: x has {} elements and y {}; they have to have {} and {}",
                    state_->rows, state_->cols, x.size(), y.size(), state_->cols, state_->rows));
  }
  const std::less<const Value*> before;
  if (before(x.data(), y.data() + y.size()) && before(y.data(), x.data() + x.size()))
    throw error(errc::invalid_argument, "spmv: x and y overlap; they have to lie apart");
  if (state_->threads > 1 && state_->generation != process_generation()) {
    throw error(errc::unsupported,
                "spmv: this is a forked process, and the threads of the product stayed in the "
                "process that made them; make another product here");
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
