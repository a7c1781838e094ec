#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include <untax/select/schema.hpp>

namespace untax::select {

[[nodiscard]] nlohmann::json json_of(const schema& s);

/// Throws `invalid_argument` with `origin` if `document` does not describe a table.
[[nodiscard]] schema schema_of(const nlohmann::json& document, std::string_view origin);

}  // namespace untax::select
