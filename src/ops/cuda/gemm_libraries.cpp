#include <fmt/format.h>

#include <untax/core/error.hpp>

#include "ops/all_gather_gemm/device.hpp"
#include "ops/gemm_all_scatter/device.hpp"

namespace untax {
namespace {

[[noreturn]] void refuse(const world& w, std::string_view name) {
  throw error(
      errc::unsupported,
      fmt::format("rank {}: {}: bulk_library is not there yet in worlds of GPUs", w.rank(), name));
}

}  // namespace

std::unique_ptr<device_operator> all_gather_gemm_by_library(
    world& w, const all_gather_gemm_problem& /*problem*/) {
  refuse(w, "all_gather_gemm");
}
std::unique_ptr<device_operator> gemm_all_scatter_by_library(
    world& w, const gemm_all_scatter_problem& /*problem*/) {
  refuse(w, "gemm_all_scatter");
}

}  // namespace untax
