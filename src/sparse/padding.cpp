#include <fmt/format.h>

#include <untax/core/error.hpp>
#include <untax/sparse/spmv.hpp>

namespace untax::sparse {
namespace {

constexpr double padded_freely = 1 << 16;

}  // namespace

void require_padding(std::int64_t rows, std::int64_t elements, std::int64_t longest) {
  const double padded = static_cast<double>(longest) * static_cast<double>(rows);
  if (padded <= padded_freely || padded <= most_padding * static_cast<double>(elements)) return;
  throw error(
      errc::unsupported,
      fmt::format("ELL would store {:.3g} elements for {}, since the longest of {} rows has "
                  "{}; it may store {:.0f} times as many",
                  padded, elements, rows, longest, most_padding));
}

}  // namespace untax::sparse
