#include "machine_files.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "ops/timing/judgement.hpp"

namespace untax::cli {
namespace {

std::string beside(const std::string& file, const std::string& name) {
  return (std::filesystem::path(file).parent_path() / name).string();
}

}  // namespace

calibration calibration_of(const timing::machine& m, const std::string& file) {
  if (m.calibration.empty()) return {};
  return load_calibration(beside(file, m.calibration));
}

std::string prediction_text(const timing::machine& m, const std::string& file) {
  const std::string origin = fmt::format("predicted for {} by untax's timing engine", m.title());
  if (m.judgement.empty()) return origin + ", which was not judged on such a machine";
  const judgement_summary known = load_judgement(beside(file, m.judgement));
  return fmt::format(
      "{}, whose mean error on measurements{} is {:.1f} %, and more for single figures "
      "(docs/timing.md)",
      origin,
      m.measured && m.device == known.device
          ? std::string()
          : fmt::format(", of {} x {},", known.ranks, known.device),
      100 * known.mean_error);
}

}  // namespace untax::cli
