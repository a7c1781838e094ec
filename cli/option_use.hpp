#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace untax::cli {

/// Options, and the actions of a verb that have them. Options in no list belong to every action.
struct option_use {
  std::vector<const char*> options;
  std::vector<std::string> actions;
};

/// Refuses options of `verb` that `action` does not have, so that none is ignored silently: "--size
/// means nothing to the suite host; it is for gemm or shared", where `what` is "the suite ".
void refuse_foreign_options(const CLI::App& verb, const std::vector<option_use>& uses,
                            const std::string& what, const std::string& action);

/// Refuses options that have no effect for one operator or action: "--threads means nothing to
/// NAME, which REASON; leave it out".
class option_check {
 public:
  option_check(const CLI::App& verb, std::string name) : verb_(verb), name_(std::move(name)) {}

  void refuse(const std::initializer_list<const char*>& options, const char* reason) const;

 private:
  const CLI::App& verb_;
  std::string name_;
};

}  // namespace untax::cli
