#include <untax/c/sparse.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include <untax/core/error.hpp>
#include <untax/sparse/spmv.hpp>

#include "failure.hpp"
#include "reading.hpp"

/// The object behind a product handle.
struct untax_spmv {
  untax_spmv() = default;
  untax_spmv(const untax_spmv&) = delete;
  untax_spmv& operator=(const untax_spmv&) = delete;
  virtual ~untax_spmv() = default;

  virtual void run(double alpha, const void* x, std::int64_t x_count, double beta, void* y,
                   std::int64_t y_count) = 0;
  [[nodiscard]] virtual double setup_seconds() const noexcept = 0;
};

namespace untax::c {
namespace {

constexpr auto& ways = sparse::all_spmv_kernels;

[[noreturn]] void refuse_sparse(const std::string& what) {
  throw error(errc::invalid_argument, what);
}

sparse::spmv_kernel way_named(std::string_view name) {
  const auto match = std::ranges::find(ways, name, &sparse::name_of);
  if (match != ways.end()) return *match;
  std::string known;
  for (const auto way : ways)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", sparse::name_of(way));
  refuse_sparse(fmt::format("there is no way '{}'; there are {}", name, known));
}

/// `count` elements of the caller. The pointer may be null only if `count` is 0.
template <class T, class Pointer>
std::span<T> span_of(std::string_view name, Pointer p, std::int64_t count) {
  if (count < 0) refuse_sparse(fmt::format("{} has {} elements", name, count));
  if (count > 0) require(p, name);
  return {static_cast<T*>(p), static_cast<std::size_t>(count)};
}

template <class Value, class Offset>
class product final : public untax_spmv {
 public:
  product(const untax_csr& m, sparse::spmv_kernel way, int threads)
      : work_({m.rows, m.cols, span_of<const Offset>("offsets", m.offsets, m.rows + 1),
               span_of<const std::int32_t>("columns", m.columns, m.elements),
               span_of<const Value>("values", m.values, m.elements)},
              way, threads) {}

  void run(double alpha, const void* x, std::int64_t x_count, double beta, void* y,
           std::int64_t y_count) override {
    work_.run(static_cast<Value>(alpha), span_of<const Value>("x", x, x_count),
              static_cast<Value>(beta), span_of<Value>("y", y, y_count));
  }
  [[nodiscard]] double setup_seconds() const noexcept override { return work_.setup_seconds(); }

 private:
  sparse::spmv<Value, Offset> work_;
};

template <class Value>
std::unique_ptr<untax_spmv> made_of(const untax_csr& m, sparse::spmv_kernel way, int threads) {
  if (m.offset_bits == 32) return std::make_unique<product<Value, std::int32_t>>(m, way, threads);
  return std::make_unique<product<Value, std::int64_t>>(m, way, threads);
}

void require_bits(std::string_view name, std::int32_t bits) {
  if (bits != 32 && bits != 64)
    refuse_sparse(fmt::format("{} is {}; it can be 32 or 64", name, bits));
}

int all_threads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 1024);
}

}  // namespace
}  // namespace untax::c

using untax::c::guarded;
using untax::c::require;

const char* untax_spmv_way(int32_t number) {
  if (number < 0 || number >= static_cast<int32_t>(untax::c::ways.size())) return nullptr;
  return untax::sparse::name_of(untax::c::ways[static_cast<std::size_t>(number)]).data();
}

int32_t untax_spmv_make(const untax_csr* matrix, const char* way, int32_t threads,
                        untax_spmv** product) {
  return guarded(nullptr, [&] {
    require(matrix, "matrix");
    require(product, "product");
    const auto m = untax::c::taken(matrix, "untax_csr");
    untax::c::require_bits("offset_bits", m.offset_bits);
    untax::c::require_bits("value_bits", m.value_bits);
    const auto chosen =
        way == nullptr ? untax::sparse::spmv_kernel::csr_merge_path : untax::c::way_named(way);
    const int count = threads == 0 ? untax::c::all_threads() : threads;
    auto result = m.value_bits == 32 ? untax::c::made_of<float>(m, chosen, count)
                                     : untax::c::made_of<double>(m, chosen, count);
    *product = result.release();
  });
}

int32_t untax_spmv_run(untax_spmv* product, double alpha, const void* x, int64_t x_count,
                       double beta, void* y, int64_t y_count) {
  return guarded(nullptr, [&] {
    require(product, "product");
    product->run(alpha, x, x_count, beta, y, y_count);
  });
}

double untax_spmv_setup_seconds(const untax_spmv* product) {
  return product == nullptr ? 0 : product->setup_seconds();
}

int32_t untax_spmv_destroy(untax_spmv* product) {
  return guarded(nullptr, [&] { delete product; });
}
