#pragma once

#include <string>
#include <vector>

#include "ops/timing/timed_case.hpp"

namespace untax {

/// A measured time of a case.
struct figure {
  timed_case what;
  double seconds = 0;
  std::string file;  ///< its name, without the folder
};

/// The measured taxes of one operation: seconds of E0 to E4, below 0 if there is none.
struct measured_row {
  timed_case what;
  double steps[5] = {-1, -1, -1, -1, -1};
  std::string file;
};

struct measurements {
  std::vector<figure> figures;
  std::vector<measured_row> rows;
  std::vector<std::string> files;  ///< the files that were used
};

/// Reads files that `untax bench`, `untax bench tune` and `untax taxes` wrote about a device:
/// files, or all *.json of folders, with `least` to `most` ranks. Files with other numbers of ranks
/// are not read further. Throws `invalid_argument` for other files.
[[nodiscard]] measurements read_measurements(const std::vector<std::string>& paths,
                                             const std::string& device, int least, int most);

}  // namespace untax
