#include <untax/sparse/profile.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/select/cells.hpp"
#include "src/select/packed_file.hpp"

namespace untax::sparse {

std::vector<named_profile> read_profiles(const std::string& path) {
  const select::cells rows =
      select::cells_of_csv(unpacked_text_of_file(path, {.bytes = select::most_bytes}), path);
  const auto group = std::ranges::find(rows.columns, "group");
  const std::size_t name = rows.column("name");
  std::vector<named_profile> profiles;
  for (std::size_t row = 0; row < rows.rows.size(); ++row) {
    named_profile profile;
    if (group != rows.columns.end())
      profile.name = rows.rows[row][static_cast<std::size_t>(group - rows.columns.begin())] + "/";
    profile.name += rows.rows[row][name];
    const auto number = [&](const char* column) {
      const double value = rows.number(row, rows.column(column));
      if (!(value >= 0 && value < 1e15))
        rows.refuse(row,
                    fmt::format("{} is {}; it has to be a number of 0 or more", column, value));
      return value;
    };
    row_profile& p = profile.profile;
    p.rows = std::llround(number("rows"));
    p.cols = std::llround(number("cols"));
    p.nnz = std::llround(number("nnz"));
    p.row_min = number("row_min");
    p.row_q1 = number("row_q1");
    p.row_median = number("row_median");
    p.row_q3 = number("row_q3");
    p.row_max = number("row_max");
    p.row_variance = number("row_variance");
    p.row_mean = p.rows == 0 ? 0 : static_cast<double>(p.nnz) / static_cast<double>(p.rows);
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace untax::sparse
