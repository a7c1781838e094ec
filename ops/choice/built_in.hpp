#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace untax {

struct named_text {
  std::string name;
  std::string text;
};

/// The files in ops/choice/tables; a source that is generated from them defines it.
[[nodiscard]] std::vector<named_text> built_in_texts();

/// Lines as one text: a literal alone has a limit of length.
[[nodiscard]] std::string joined(std::initializer_list<const char*> lines);

}  // namespace untax
