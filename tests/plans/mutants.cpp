#include "tests/plans/mutants.hpp"

namespace plans_test {

const std::vector<entry_change>& entry_changes() {
  using list = std::vector<transfer>;
  const auto with_rows = [](const list& l, std::size_t i) { return l[i].rows > 0; };
  static const std::vector<entry_change> all = {
      {"another row to read",
       [=](list& l, std::size_t i, numbers& n) {
         l[i].from_row += n(0, 1) == 0 ? 1 : -1;
         return with_rows(l, i);
       }},
      {"another column to read",
       [=](list& l, std::size_t i, numbers&) {
         l[i].from_col += 8;
         return with_rows(l, i);
       }},
      {"another row to write",
       [=](list& l, std::size_t i, numbers& n) {
         l[i].to_row += n(0, 1) == 0 ? 1 : -1;
         return with_rows(l, i);
       }},
      {"another column to write",
       [=](list& l, std::size_t i, numbers&) {
         l[i].to_col += 8;
         return with_rows(l, i);
       }},
      {"fewer rows",
       [=](list& l, std::size_t i, numbers&) { return with_rows(l, i) && --l[i].rows >= 0; }},
      {"more columns",
       [=](list& l, std::size_t i, numbers&) {
         const bool there = with_rows(l, i);
         l[i].cols += 8;
         return there;
       }},
      {"another hop",
       [](list& l, std::size_t i, numbers&) {
         ++l[i].first_hop;
         return l[i].rows > 0 || l[i].publish >= 0 || l[i].retire >= 0;
       }},
      {"another counter to reserve",
       [](list& l, std::size_t i, numbers&) { return l[i].reserve >= 0 && ++l[i].reserve > 0; }},
      {"another counter to acquire",
       [](list& l, std::size_t i, numbers&) { return l[i].acquire >= 0 && ++l[i].acquire > 0; }},
      {"another counter to publish",
       [](list& l, std::size_t i, numbers&) { return l[i].publish >= 0 && ++l[i].publish > 0; }},
      {"another counter to retire",
       [](list& l, std::size_t i, numbers&) { return l[i].retire >= 0 && ++l[i].retire > 0; }},
      {"no wait",
       [](list& l, std::size_t i, numbers&) {
         const bool waits = l[i].acquire >= 0;
         l[i].acquire = -1;
         return waits;
       }},
      {"no signal",
       [](list& l, std::size_t i, numbers&) {
         const bool signals = l[i].publish >= 0;
         l[i].publish = -1;
         return signals;
       }},
      {"a use too early",
       [](list& l, std::size_t i, numbers&) { return l[i].reserve >= 0 && ++l[i].credit > 0; }},
      {"two change places",
       [](list& l, std::size_t i, numbers&) {
         if (i + 1 >= l.size() || l[i] == l[i + 1]) return false;
         std::swap(l[i], l[i + 1]);
         return true;
       }},
      {"one left out",
       [](list& l, std::size_t i, numbers&) {
         l.erase(l.begin() + static_cast<std::ptrdiff_t>(i));
         return true;
       }},
      {"one twice",
       [](list& l, std::size_t i, numbers&) {
         l.insert(l.begin() + static_cast<std::ptrdiff_t>(i), l[i]);
         return true;
       }},
  };
  return all;
}

}  // namespace plans_test
