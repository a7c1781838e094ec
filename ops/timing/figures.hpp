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

/// The taxes of one operation, as measured: seconds of E0 to E4, below 0 where there is none.
struct measured_row {
  timed_case what;
  double steps[5] = {-1, -1, -1, -1, -1};
  std::string file;
};

struct measurements {
  std::vector<figure> figures;
  std::vector<measured_row> rows;
  std::vector<std::string> files;  ///< that something was read from
};

/// Reads what `untax bench`, `untax bench tune` and `untax taxes` wrote about a device: files, or
/// all *.json of folders, that are of `least` to `most` ranks. Of other files nothing but that
/// number is looked at. Throws `invalid_argument` for a file that is none.
[[nodiscard]] measurements read_measurements(const std::vector<std::string>& paths,
                                             const std::string& device, int least, int most);

}  // namespace untax
