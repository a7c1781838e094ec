#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include <untax/core/error.hpp>

namespace untax_test {

/// The error that `call` throws; the test fails if it throws none.
template <class Call>
untax::error error_of(const Call& call) {
  try {
    call();
  } catch (const untax::error& e) {
    return e;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {untax::errc::internal, "nothing was thrown"};
}

inline void expect_error(const untax::error& e, untax::errc code,
                         const std::vector<std::string>& parts) {
  EXPECT_EQ(untax::name_of(e.code()), untax::name_of(code)) << e.what();
  for (const std::string& part : parts) {
    EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos)
        << "missing: " << part << "\nin: " << e.what();
  }
}

}  // namespace untax_test
