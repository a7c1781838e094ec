#include "bench/suites/rma.hpp"

#include <algorithm>

namespace untax::bench {

bool met_by_any(const rma_report& report, const rma_figure& figure) {
  return std::ranges::any_of(report.figures, [&](const rma_figure& other) {
    return other.table == figure.table && other.what == figure.what &&
           other.blocks == figure.blocks && other.bytes == figure.bytes &&
           other.bar == figure.bar && other.from == figure.from && other.to == figure.to &&
           other.met();
  });
}

}  // namespace untax::bench
