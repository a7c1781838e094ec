#include <untax/sparse/csr.hpp>

#include <algorithm>

#include "src/sparse/instantiate.hpp"

namespace untax::sparse {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw error(errc::invalid_argument, "sparse matrix: " + what);
}

/// Sorts a row by column and adds elements of equal columns. Returns the remaining number.
std::int64_t settle(std::vector<std::pair<std::int32_t, double>>& row) {
  // The sort is stable: elements of the same column are added in the order in which they were
  // given.
  std::ranges::stable_sort(row, {}, &std::pair<std::int32_t, double>::first);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (kept > 0 && row[kept - 1].first == row[i].first) {
      row[kept - 1].second += row[i].second;
    } else {
      row[kept++] = row[i];
    }
  }
  row.resize(kept);
  return static_cast<std::int64_t>(kept);
}

}  // namespace

template <class Value, class Offset>
csr<Value, Offset> csr_of(const coordinates& from) {
  require_offsets_for<Offset>(from.size());
  std::vector<std::int64_t> begins(static_cast<std::size_t>(from.rows) + 1);
  for (std::size_t i = 0; i < from.value.size(); ++i) {
    if (from.row[i] < 0 || from.row[i] >= from.rows || from.column[i] < 0 ||
        from.column[i] >= from.cols) {
      refuse(fmt::format("element {} is in row {}, column {}, counted from 0, of {} x {}", i,
                         from.row[i], from.column[i], from.rows, from.cols));
    }
    ++begins[static_cast<std::size_t>(from.row[i]) + 1];
  }
  for (std::size_t r = 1; r < begins.size(); ++r) begins[r] += begins[r - 1];
  std::vector<std::pair<std::int32_t, double>> elements(from.value.size());
  std::vector<std::int64_t> next(begins.begin(), begins.end() - 1);
  for (std::size_t i = 0; i < from.value.size(); ++i) {
    const std::int64_t at = next[static_cast<std::size_t>(from.row[i])]++;
    elements[static_cast<std::size_t>(at)] = {from.column[i], from.value[i]};
  }
  csr<Value, Offset> result;
  result.rows = from.rows;
  result.cols = from.cols;
  result.offsets.assign(begins.size(), 0);
  std::vector<std::pair<std::int32_t, double>> row;
  for (std::size_t r = 0; r + 1 < begins.size(); ++r) {
    row.assign(elements.begin() + begins[r], elements.begin() + begins[r + 1]);
    result.offsets[r + 1] = static_cast<Offset>(result.offsets[r] + settle(row));
    for (const auto& [column, value] : row) {
      result.columns.push_back(column);
      result.values.push_back(static_cast<Value>(value));
    }
  }
  return result;
}

template <class Value, class Offset>
void require_valid(const csr_view<Value, Offset>& m) {
  if (m.rows < 0 || m.cols < 0 || m.cols > std::numeric_limits<std::int32_t>::max())
    refuse(fmt::format("it is {} x {}; sizes are 0 or more, and columns at most {}", m.rows, m.cols,
                       std::numeric_limits<std::int32_t>::max()));
  if (static_cast<std::int64_t>(m.offsets.size()) != m.rows + 1)
    refuse(
        fmt::format("there are {} rows and {} offsets; there has to be one more offset than rows",
                    m.rows, m.offsets.size()));
  if (m.offsets.front() != 0)
    refuse(fmt::format("its offsets begin with {} instead of 0", m.offsets.front()));
  for (std::size_t r = 0; r + 1 < m.offsets.size(); ++r) {
    if (m.offsets[r] > m.offsets[r + 1])
      refuse(fmt::format("row {} begins at {} and ends at {}", r, m.offsets[r], m.offsets[r + 1]));
  }
  const auto elements = static_cast<std::size_t>(m.size());
  if (m.columns.size() < elements || m.values.size() < elements)
    refuse(fmt::format("its offsets count {} elements; there are {} columns and {} values",
                       elements, m.columns.size(), m.values.size()));
  for (std::size_t i = 0; i < elements; ++i) {
    if (m.columns[i] < 0 || m.columns[i] >= m.cols)
      refuse(fmt::format("element {} is in column {}, counted from 0, of {}", i, m.columns[i],
                         m.cols));
  }
}

#define UNTAX_CSR(Value, Offset)                               \
  template csr<Value, Offset> csr_of(const coordinates& from); \
  template void require_valid(const csr_view<Value, Offset>& matrix);
UNTAX_SPARSE_TYPES(UNTAX_CSR)
#undef UNTAX_CSR

}  // namespace untax::sparse
