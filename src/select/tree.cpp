#include <untax/select/tree.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <untax/core/error.hpp>

namespace untax::select {

decision_tree::decision_tree(std::vector<node> nodes) : nodes_(std::move(nodes)) {
  const auto refuse = [](std::size_t at, const char* what) {
    throw error(errc::invalid_argument,
                fmt::format("node {} of a decision tree {}; children have to come behind their "
                            "parent, each once",
                            at, what));
  };
  if (nodes_.empty()) refuse(0, "is missing");
  std::vector<int> parents(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].feature < 0) continue;
    for (const int child : {nodes_[i].low, nodes_[i].high}) {
      if (child <= static_cast<int>(i) || child >= static_cast<int>(nodes_.size()))
        refuse(i, fmt::format("has a child {}", child).c_str());
      ++parents[static_cast<std::size_t>(child)];
    }
  }
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    if (parents[i] != 1) refuse(i, parents[i] == 0 ? "has no parent" : "has two parents");
  }
}

std::vector<int> decision_tree::path(std::span<const double> features) const {
  std::vector<int> way{0};
  for (;;) {
    const node& n = nodes_[static_cast<std::size_t>(way.back())];
    if (n.feature < 0) return way;
    way.push_back(features[static_cast<std::size_t>(n.feature)] <= n.threshold ? n.low : n.high);
  }
}

int decision_tree::depth() const {
  std::vector<int> depths(nodes_.size());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].feature < 0) continue;
    depths[static_cast<std::size_t>(nodes_[i].low)] = depths[i] + 1;
    depths[static_cast<std::size_t>(nodes_[i].high)] = depths[i] + 1;
  }
  return *std::ranges::max_element(depths);
}

}  // namespace untax::select
