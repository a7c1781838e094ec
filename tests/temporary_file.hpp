#pragma once

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace untax_test {

/// A file that no other test has, removed with this. Throws std::runtime_error if there can be
/// none.
class temporary_file {
 public:
  temporary_file() {
    const int file = mkstemp(path_.data());
    if (file < 0) throw std::runtime_error("cannot make " + path_);
    close(file);
  }
  ~temporary_file() { unlink(path_.c_str()); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_ = testing::TempDir() + "untax-test-XXXXXX";
};

}  // namespace untax_test
