#include <gtest/gtest.h>

#include "ranks.hpp"

int main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--as-rank") return multi_test::run_body(argv[2]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
