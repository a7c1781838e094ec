#pragma once

#include <string>
#include <utility>
#include <vector>

namespace untax::cli {

/// Throws `invalid_argument` if two outputs of a command go to the same file, or two to stdout
/// (-). Each element is an option, such as "--json", and its path; an empty path counts as not
/// given. Devices, such as /dev/null, may be named twice.
void refuse_same_paths(const std::vector<std::pair<std::string, std::string>>& option_and_path);

}  // namespace untax::cli
