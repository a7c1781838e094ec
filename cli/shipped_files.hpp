#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace untax::cli {

/// Replaces the bare name of a file in `folder` ("models" or "machines") of this installation by
/// its path: "llama-3.2-1b" by ".../models/llama-3.2-1b.json". Existing paths, and names with a
/// slash or a suffix, stay as they are. Returns an empty string, or for an unknown name a refusal
/// that lists the known ones.
[[nodiscard]] std::string resolve_shipped(const std::string& folder, std::string& text);

/// The same for the value of an option.
[[nodiscard]] CLI::Validator shipped_file(const char* folder);

}  // namespace untax::cli
