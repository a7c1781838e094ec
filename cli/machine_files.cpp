#include "machine_files.hpp"

#include <filesystem>

namespace untax::cli {

calibration calibration_of(const timing::machine& m, const std::string& file) {
  if (m.calibration.empty()) return {};
  return load_calibration((std::filesystem::path(file).parent_path() / m.calibration).string());
}

}  // namespace untax::cli
