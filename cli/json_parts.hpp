#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <untax/taxes/report.hpp>

namespace untax::cli {

using json = nlohmann::ordered_json;

/// The first fields of every document: format, version and commit of untax, date, machine.
[[nodiscard]] json head(std::string_view format);
[[nodiscard]] json from(const spread& time);
/// Indented, with an end of line.
[[nodiscard]] std::string text_of(const json& document);

}  // namespace untax::cli
