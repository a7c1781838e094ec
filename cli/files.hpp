#pragma once

#include <string>
#include <utility>
#include <vector>

namespace untax::cli {

/// The reason why no file can be written at `path`, and the right form of a path; empty if a file
/// can be written. "-", which stands for stdout, always can.
[[nodiscard]] std::string why_not_writable(const std::string& path);

/// Writes `text` to a file and says so on stdout, or prints it for "-". Throws `output_lost`.
void write_json(const std::string& path, const std::string& text);

/// Throws `invalid_argument` if two outputs of a command go to the same file, or two to stdout
/// (-). Each element is an option, such as "--json", and its path; an empty path counts as not
/// given. Devices, such as /dev/null, may be named twice.
void refuse_same_paths(const std::vector<std::pair<std::string, std::string>>& option_and_path);

/// Replaces the bare name of a file in `folder` ("models" or "machines") of this installation by
/// its path: "llama-3.2-1b" by ".../models/llama-3.2-1b.json". Existing paths, and names with a
/// slash or a suffix, stay as they are. Returns an empty string, or for an unknown name a refusal
/// that lists the known ones.
[[nodiscard]] std::string resolve_shipped(const std::string& folder, std::string& text);

}  // namespace untax::cli
