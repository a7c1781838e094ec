// Operators that are planned and run by names give the bits that their own functions give.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support.hpp"

namespace {

using namespace c_test;

untax_setting number(const char* name, std::int64_t value) {
  untax_setting setting{};
  setting.name = name;
  setting.kind = untax_field_integer;
  setting.integer = value;
  return setting;
}

untax_setting word(const char* name, const char* value) {
  untax_setting setting{};
  setting.name = name;
  setting.kind = untax_field_choice;
  setting.word = value;
  return setting;
}

/// The shapes of a problem for one rank, by the names of operands.
std::map<std::string, untax_operand_shape> shapes_of(const char* name,
                                                     const std::vector<untax_setting>& settings,
                                                     int ranks, int rank) {
  std::map<std::string, untax_operand_shape> shapes;
  untax_operand_shape shape{};
  shape.size = sizeof shape;
  const auto count = static_cast<std::int32_t>(settings.size());
  for (int i = 0;
       untax_operator_shape(name, settings.data(), count, ranks, rank, i, &shape) == untax_ok; ++i)
    shapes[shape.name] = shape;
  return shapes;
}

/// fp32 operands of a rank, filled with small whole numbers, whose sums are exact.
class operands {
 public:
  operands(const std::map<std::string, untax_operand_shape>& shapes, int rank) {
    for (const auto& [name, shape] : shapes) {
      if (shape.type != untax_f32 || (shape.optional != 0 && shape.written == 0)) continue;
      auto& memory = memory_[name];
      memory.assign(static_cast<std::size_t>(shape.rows * shape.cols), -1);
      if (shape.written == 0) {
        for (std::size_t i = 0; i < memory.size(); ++i)
          memory[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 3) % 11);
      }
      list_.push_back({memory_.find(name)->first.c_str(), memory.data(), shape.rows, shape.cols, 0,
                       shape.type});
    }
  }
  [[nodiscard]] const std::vector<untax_operand>& list() const { return list_; }
  [[nodiscard]] std::vector<float>& memory(const std::string& name) { return memory_.at(name); }

 private:
  std::map<std::string, std::vector<float>> memory_;
  std::vector<untax_operand> list_;
};

TEST(c_by_name, a_gemm_by_name_equals_the_gemm_by_functions) {
  run_ranks(3, [](untax_world* world, int rank) {
    const std::vector<untax_setting> settings = {number("m", 5), number("n", 16), number("k", 24),
                                                 word("type", "fp32")};
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_operator_plan(world, "gemm_all_reduce", settings.data(), 4, &op), untax_ok)
        << last_text();
    const auto shapes = shapes_of("gemm_all_reduce", settings, 3, rank);
    ASSERT_EQ(shapes.size(), 3U);
    operands given(shapes, rank);
    EXPECT_OK(untax_operator_run(op, given.list().data(), 3, nullptr));
    EXPECT_OK(untax_operator_destroy(op));

    const untax_gemm_all_reduce_problem problem{sizeof problem, 5, 16, 24, untax_f32, 0};
    ASSERT_EQ(untax_gemm_all_reduce_plan(world, &problem, nullptr, &op), untax_ok);
    const auto matrix = [&](const char* name) {
      return untax_const_matrix{given.memory(name).data(), shapes.at(name).rows,
                                shapes.at(name).cols, 0, untax_f32};
    };
    std::vector<float> expected(5 * 16);
    const untax_const_matrix a = matrix("a");
    const untax_const_matrix weights = matrix("weights");
    const untax_matrix c{expected.data(), 5, 16, 0, untax_f32};
    EXPECT_OK(untax_gemm_all_reduce_run(op, &a, &weights, &c, nullptr));
    EXPECT_EQ(given.memory("c"), expected);
    EXPECT_OK(untax_operator_destroy(op));
  });
}

TEST(c_by_name, all_operators_of_fp32_are_planned_and_run) {
  const std::map<std::string, std::vector<untax_setting>> problems = {
      {"all_gather_gemm", {number("m", 5), number("n", 3), number("k", 8)}},
      {"gemm_all_scatter", {number("m", 5), number("n", 16), number("k", 8)}},
      {"gemm_reduce_scatter", {number("m", 5), number("n", 16), number("k", 24)}},
      {"gemm_all_reduce", {number("m", 5), number("n", 16), number("k", 24)}},
      {"merge_partial_attention", {number("tokens", 2), number("heads", 3), number("head_dim", 4)}},
      {"all_reduce_norm", {number("tokens", 3), number("hidden", 8)}},
      {"all_gather", {number("count", 10)}},
      {"reduce_scatter", {number("count", 10)}},
      {"all_reduce", {number("count", 10), word("reduction", "max")}},
      {"all_to_all", {number("count", 10)}},
      {"broadcast", {number("count", 10), number("root", 1)}}};
  run_ranks(2, [&](untax_world* world, int rank) {
    for (const auto& [name, settings] : problems) {
      SCOPED_TRACE(name);
      untax_operator* op = nullptr;
      ASSERT_EQ(untax_operator_plan(world, name.c_str(), settings.data(),
                                    static_cast<std::int32_t>(settings.size()), &op),
                untax_ok)
          << last_text();
      auto shapes = shapes_of(name.c_str(), settings, 2, rank);
      shapes.erase("scales");
      if (name == "gemm_all_scatter") shapes.erase("c");  // in symmetric memory: its own
      if (name == "broadcast") shapes["in"].optional = 0;
      operands given(shapes, rank);
      EXPECT_OK(untax_operator_run(op, given.list().data(),
                                   static_cast<std::int32_t>(given.list().size()), nullptr));
      EXPECT_OK(untax_operator_destroy(op));
    }
  });
}

TEST(c_by_name, shapes_of_impossible_problems_are_refused) {
  const std::int64_t counts[] = {1, 2, 3};
  untax_setting parts{};
  parts.name = "counts";
  parts.kind = untax_field_integers;
  parts.integers = counts;
  parts.integers_size = 3;
  untax_operand_shape shape{};
  shape.size = sizeof shape;
  expect_failure(untax_operator_shape("all_to_all", &parts, 1, 2, 0, 0, &shape),
                 untax_invalid_argument, {"counts has 3 entries", "2 ranks need 4"});
  expect_failure(untax_operator_shape("all_reduce", nullptr, 0, 2, 2, 0, &shape),
                 untax_invalid_argument, {"rank is 2 of 2 ranks"});
  expect_failure(untax_operator_shape("all_reduce", nullptr, 0, 2, 0, 2, &shape),
                 untax_invalid_argument, {"no operand 2", "it has 2"});
  untax_field f{};
  f.size = sizeof f;
  expect_failure(untax_operator_field("all_reduce", 99, &f), untax_invalid_argument,
                 {"no field 99"});
}

TEST(c_by_name, runs_of_fewer_rows_fill_the_first_rows_of_the_own_result) {
  run_ranks(1, [](untax_world* world, int) {
    const untax_setting settings[] = {number("m", 4), number("n", 3), number("k", 2),
                                      word("type", "fp32"), number("varying_rows", 1)};
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_operator_plan(world, "gemm_all_reduce", settings, 5, &op), untax_ok);
    untax_matrix own{};
    EXPECT_OK(untax_operator_result(op, &own));
    EXPECT_EQ(own.rows, 4);
    EXPECT_EQ(own.cols, 3);
    auto* result = static_cast<float*>(own.data);
    std::fill_n(result, 12, -1.0F);
    float a[4] = {1, 2, 3, 4};
    float weights[6] = {1, 1, 1, 1, 1, 1};
    const untax_operand given[] = {{"a", a, 2, 2, 0, untax_f32},
                                   {"weights", weights, 3, 2, 0, untax_f32}};
    EXPECT_OK(untax_operator_run(op, given, 2, nullptr));
    EXPECT_EQ(std::vector<float>(result, result + 9),
              (std::vector<float>{3, 3, 3, 7, 7, 7, -1, -1, -1}));
    EXPECT_OK(untax_operator_destroy(op));

    const untax_setting count = number("count", 4);
    ASSERT_EQ(untax_operator_plan(world, "all_reduce", &count, 1, &op), untax_ok);
    expect_failure(untax_operator_result(op, &own), untax_invalid_argument,
                   {"all_reduce has no C of its own"});
    expect_failure(untax_operator_result(op, nullptr), untax_invalid_argument, {"result is NULL"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

TEST(c_by_name, results_have_the_rows_of_the_run) {
  run_ranks(1, [](untax_world* world, int) {
    const untax_setting settings[] = {number("tokens", 3), number("hidden", 2),
                                      word("type", "fp32"), number("varying_rows", 1),
                                      word("output", "e4m3_per_token")};
    untax_operator* op = nullptr;
    ASSERT_EQ(untax_operator_plan(world, "all_reduce_norm", settings, 5, &op), untax_ok);
    float numbers[6] = {1, 2, 3, 4, 5, 6};
    float x[6] = {};
    std::uint8_t out[6] = {};
    float scales[3] = {};
    const auto run = [&](std::int64_t rows_of_x, std::int64_t rows_of_scales) {
      const untax_operand given[] = {{"in", numbers, 2, 2, 0, untax_f32},
                                     {"residual", numbers, 2, 2, 0, untax_f32},
                                     {"weight", numbers, 1, 2, 0, untax_f32},
                                     {"x", x, rows_of_x, 2, 0, untax_f32},
                                     {"out", out, 2, 2, 0, untax_e4m3},
                                     {"scales", scales, 1, rows_of_scales, 0, untax_f32}};
      return untax_operator_run(op, given, 6, nullptr);
    };
    EXPECT_OK(run(2, 2));
    EXPECT_EQ(x[3], 8);
    EXPECT_EQ(x[4], 0);
    EXPECT_GT(scales[1], 0);
    EXPECT_EQ(scales[2], 0);
    expect_failure(run(1, 2), untax_invalid_argument, {"x is 1 x 2 of fp32", "2 x 2 of fp32"});
    expect_failure(run(2, 1), untax_invalid_argument, {"scales is 1 x 1", "1 x 2 of fp32"});
    EXPECT_OK(untax_operator_destroy(op));
  });
}

TEST(c_by_name, wrong_names_and_values_are_refused) {
  run_ranks(1, [](untax_world* world, int) {
    untax_operator* op = nullptr;
    const auto plan = [&](const char* name, std::vector<untax_setting> settings) {
      return untax_operator_plan(world, name, settings.data(),
                                 static_cast<std::int32_t>(settings.size()), &op);
    };
    expect_failure(plan("all_sum", {}), untax_invalid_argument, {"no operator all_sum"});
    expect_failure(plan("all_reduce", {number("size", 3)}), untax_invalid_argument,
                   {"no size", "all_reduce has count, type"});
    expect_failure(plan("all_reduce", {word("type", "int8")}), untax_invalid_argument,
                   {"type is 'int8'", "fp32, fp16, bf16"});
    expect_failure(plan("all_reduce", {word("count", "many")}), untax_invalid_argument,
                   {"count is 'many'", "number"});
    expect_failure(plan("all_reduce", {number("workers", std::int64_t{1} << 40)}),
                   untax_invalid_argument, {"workers is 1099511627776"});
    untax_setting half = number("count", 0);
    half.kind = untax_field_real;
    half.real = 2.5;
    expect_failure(plan("all_reduce", {half}), untax_invalid_argument, {"count is 2.5"});
    ASSERT_EQ(plan("all_reduce", {number("count", 4)}), untax_ok);
    float in[4] = {};
    const untax_operand operand{"a", in, 1, 4, 0, untax_f32};
    expect_failure(untax_operator_run(op, &operand, 1, nullptr), untax_invalid_argument,
                   {"no operand a", "in, out"});
    const untax_operand alone{"in", in, 1, 4, 0, untax_f32};
    expect_failure(untax_operator_run(op, &alone, 1, nullptr), untax_invalid_argument,
                   {"out is missing"});
    float out[4] = {};
    const untax_operand apart[] = {{"in", in, 4, 1, 2, untax_f32},
                                   {"out", out, 1, 4, 7, untax_f32}};
    expect_failure(untax_operator_run(op, apart, 2, nullptr), untax_invalid_argument,
                   {"rows of in lie 2 elements apart"});
    const untax_operand one_row[] = {{"in", in, 1, 4, 7, untax_f32}, apart[1]};
    EXPECT_OK(untax_operator_run(op, one_row, 2, nullptr));
    EXPECT_OK(untax_operator_destroy(op));
  });
}

}  // namespace
