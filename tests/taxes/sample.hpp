#pragma once

#include <string>

#include <untax/core/error.hpp>
#include <untax/taxes/model_config.hpp>
#include <untax/taxes/report.hpp>

namespace untax::test {

/// A file of the models directory, wherever the test was started.
inline std::string model_file(const std::string& name) {
  return UNTAX_SOURCE_DIR "/models/" + name + ".json";
}

/// The text of the `untax::error` that `action` throws, "" when it throws none. Other exceptions
/// pass through.
template <class Action>
std::string error_text(Action&& action, errc expected = errc::invalid_argument) {
  try {
    action();
  } catch (const error& wrong) {
    return wrong.code() == expected ? wrong.what() : "wrong code: " + std::string(wrong.what());
  }
  return "";
}

/// A complete report with two operations whose parts are easy to add up in the head (seconds):
/// qkv, 10 times:  E0 10, E1 9, E2 8, E3 6, E4 5; bound 4 (compute 4, link 1)
/// down, 4 times:  E0 20, E1 20, E2 21, E3 18, E4 15; bound 12 (compute 3, link 12)
inline tax_report sample_report() {
  const auto step = [](const char* id, const char* ran, double median) {
    return tax_step{id, ran, {median, median - 0.125, median + 0.125}};
  };
  tax_row qkv;
  qkv.op = {"qkv", "all_gather_gemm", 64, 768, 2048, 1, 10, dtype::bf16};
  qkv.steps = {step("E0", "bulk_library, eager", 10), step("E1", "bulk_library, planned", 9),
               step("E2", "bulk_synchronous", 8), step("E3", "producer_consumer", 6),
               step("E4", "fused_specialized, push", 5)};
  qkv.compute = exactly(4);
  qkv.link = exactly(1);
  tax_row down;
  down.op = {"down", "gemm_reduce_scatter", 64, 2048, 8192, 1, 4, dtype::bf16};
  down.steps = {step("E0", "bulk_library, eager", 20), step("E1", "bulk_library, planned", 20),
                step("E2", "bulk_synchronous", 21), step("E3", "producer_consumer", 18),
                step("E4", "fused_sequential", 15)};
  down.compute = exactly(3);
  down.link = exactly(12);
  tax_report report;
  report.machine = "Linux 6.1 on x86_64";
  report.cpu = "Some Processor @ 2.5 GHz";
  report.cores = 2;
  report.backend = "host";
  report.commit = "0123abc";
  report.date = "2026-11-21T10:20:30Z";
  report.version = "0.1.0";
  report.model = "sample-1b";
  report.tensor_parallel = 4;
  report.tokens = 64;
  report.type = dtype::bf16;
  report.layers = 10;
  report.repeats = 25;
  report.rows = {qkv, down};
  report.notes = {
      "A first note.",
      "A second note, which is long enough that it has to be broken into two lines or more "
      "at a width of one hundred columns, and so it is."};
  return report;
}

}  // namespace untax::test
