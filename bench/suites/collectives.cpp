#include "bench/suites/collectives.hpp"

namespace untax::bench {

const char* name_of(collective_kind kind) noexcept {
  constexpr const char* names[] = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                   "broadcast"};
  return names[static_cast<int>(kind)];
}

std::vector<collective_kind> all_collective_kinds() {
  using enum collective_kind;
  return {all_gather, reduce_scatter, all_reduce, all_to_all, broadcast};
}

std::vector<std::int64_t> default_collective_sizes() {
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 1 << 10; bytes <= std::int64_t{1} << 30; bytes *= 2)
    sizes.push_back(bytes);
  return sizes;
}

double collective_row::sent_bytes(int ranks) const noexcept {
  const double vector_bytes = static_cast<double>(bytes);
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (kind) {
    case collective_kind::all_reduce:
      return 2 * vector_bytes * others;
    case collective_kind::broadcast:
      return vector_bytes;
    default:
      return vector_bytes * others;
  }
}

const collective_figure* collective_row::figure_of(const std::string& name) const noexcept {
  for (const collective_figure& f : figures) {
    if (f.variant == name) return &f;
  }
  return nullptr;
}

const collective_figure* collective_row::library() const noexcept {
  const collective_figure* best = nullptr;
  for (const collective_figure& f : figures) {
    if (!f.library || !f.time) continue;
    if (best == nullptr || f.time->median < best->time->median) best = &f;
  }
  return best;
}

}  // namespace untax::bench
