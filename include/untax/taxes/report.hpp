#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <untax/core/types.hpp>
#include <untax/taxes/layer.hpp>
#include <untax/trace/account.hpp>

namespace untax {

/// The distribution of a time in seconds over repeated runs; the time of a run is the longest over
/// the ranks.
struct spread {
  double median = 0;
  double p10 = 0;
  double p90 = 0;
  bool operator==(const spread&) const = default;
};

/// A time without a spread.
[[nodiscard]] constexpr spread exactly(double seconds) noexcept {
  return {seconds, seconds, seconds};
}

/// One step of the ablation.
struct tax_step {
  std::string id;   ///< "E0" to "E4"
  std::string ran;  ///< what was run: "bulk_library, eager", or the best pattern
  spread time;
  bool operator==(const tax_step&) const = default;
};

/// The account of a step by a trace: the parts of the time of a run, along the critical path and at
/// each rank. Each adds up to the time of the run.
struct traced_step {
  std::string id;  ///< "E0" to "E4"
  trace_breakdown path;
  std::vector<trace_breakdown> ranks;
  std::string cause;  ///< the largest part of the path: "launch at rank 1"
  /// The timeline of one run, for pages only: of E1 and E4 of the operation with the longest E0.
  /// JSON does not have it; the trace does.
  std::vector<timeline_piece> timeline = {};
  bool operator==(const traced_step&) const = default;
};

/// The parts of the time of E0, in seconds. They add up to E0. A part is the difference of two
/// neighbouring steps. If a step was not measured, or if E3 is not between E2 and E4, the parts on
/// both sides of it are 0, and their sum is in `joint`.
struct tax_breakdown {
  double launch = 0;            ///< E0 - E1
  double engine = 0;            ///< E1 - E2
  double bulk_synchronous = 0;  ///< E2 - E3
  double locality = 0;          ///< E3 - E4
  double remainder = 0;         ///< E4 - bound
  double bound = 0;             ///< the larger of compute and transfers alone
  double joint = 0;             ///< the difference of steps that are not neighbours

  [[nodiscard]] double total() const noexcept {
    return bound + remainder + joint + locality + bulk_synchronous + engine + launch;
  }
  /// Adds `times` times the parts of `other`.
  void add(const tax_breakdown& other, double times) noexcept;
};

/// Describes one member of `tax_breakdown`, in the order of the ablation.
struct tax_part {
  double tax_breakdown::*value;
  std::string_view key;      ///< as in JSON
  std::string_view title;    ///< "launch tax"
  std::string_view column;   ///< a short title, for the head of a column
  std::string_view meaning;  ///< one sentence
  bool is_tax;               ///< one of the three taxes, or a sum of several of them
};
extern const std::array<tax_part, 7> tax_parts;

struct tax_report;

/// The measurement of one operation.
struct tax_row {
  layer_operation op;
  std::vector<tax_step>
      steps;       ///< by id: always E0 and E4, other steps only if the backend has them
  spread compute;  ///< compute alone, with everything local
  spread link;     ///< transfers alone: the bytes on the busiest link at its measured rate
  std::vector<traced_step> traced = {};  ///< by id; empty without a trace

  /// The larger median of compute and link.
  [[nodiscard]] double bound() const noexcept;
  /// The step `id`, or null.
  [[nodiscard]] const tax_step* step(std::string_view id) const noexcept;
  /// The parts of this operation's E0 in `report`. E3 counts as between E2 and E4 unless it is
  /// outside by more than the uncertainty. A single rank has no E3, and no bulk-synchronous tax.
  [[nodiscard]] tax_breakdown breakdown(const tax_report& report) const noexcept;
  /// Whether `part` has a figure of its own, and is not in `joint`; for `joint`, whether there is
  /// one.
  [[nodiscard]] bool separates(const tax_part& part, const tax_report& report) const noexcept;
  /// The reason why parts are in `joint`: "E2 was not measured, so ..."; empty if all are separate.
  [[nodiscard]] std::string why_joint(const tax_report& report) const;
  /// The uncertainty of each part: in about 95 % of cases chance has moved it by less. It follows
  /// from the spread of the two times whose difference the part is, and from the number of runs. It
  /// is infinite for one run, which has no spread.
  [[nodiscard]] tax_breakdown uncertainty(const tax_report& report) const noexcept;
  bool operator==(const tax_row&) const = default;
};

/// An operation of the model that the backend could not measure.
struct unmeasured_operation {
  layer_operation op;
  std::string reason;
  bool operator==(const unmeasured_operation&) const = default;
};

/// The result of `untax taxes`, as plain data.
struct tax_report {
  std::string machine;  ///< "Linux 6.1 on x86_64", host name left out
  std::string cpu;
  int cores = 0;          ///< usable by the run
  std::string backend;    ///< "host" or "cuda"
  std::string gpus;       ///< of cuda: "4 x NVIDIA H200"
  std::string driver;     ///< of cuda
  std::string libraries;  ///< of cuda: "cuBLASLt 13.0.2, NCCL 2.28.9"
  /// If times are predicted and not measured: the machine, the method and its error; else empty.
  std::string predicted;
  std::string commit;
  std::string date;     ///< ISO 8601
  std::string version;  ///< of untax
  std::string model;
  int tensor_parallel = 0;
  int tokens = 0;
  dtype type = dtype::f32;
  int layers = 0;                     ///< of the model
  int repeats = 0;                    ///< timed runs of each step
  bool one_operator = false;          ///< one operator was measured, without a model or layers
  std::vector<std::string> warnings;  ///< reasons why the figures may be less accurate
  std::vector<tax_row> rows;
  std::vector<unmeasured_operation> unmeasured;  ///< sums leave them out
  std::vector<std::string> left_out;             ///< parts of the model; sums leave them out, too
  std::vector<std::string> notes;
  bool operator==(const tax_report&) const = default;
};

/// Throws `invalid_argument` for a report that cannot be shown: no rows, a row without E0 or E4, a
/// step twice, a time that is not a finite positive number, a count below one.
void check(const tax_report& report);

/// The parts that `report` has: all, or all but the joint tax.
[[nodiscard]] std::vector<tax_part> shown_parts(const tax_report& report);

/// "" if every operation was measured and is in the sums, else a text such as ", without o and
/// routed experts".
[[nodiscard]] std::string coverage(const tax_report& report);
/// "whole model", or the part of it that the sums cover: "model, without routed experts".
[[nodiscard]] std::string title_of_model(const tax_report& report);

/// The sum over all rows, weighted by how often each occurs in the model.
[[nodiscard]] tax_breakdown model_total(const tax_report& report);
/// The average layer: `model_total` divided by the number of layers.
[[nodiscard]] tax_breakdown layer_total(const tax_report& report);
/// The uncertainty of `layer_total`, as if all errors had the same sign.
[[nodiscard]] tax_breakdown layer_uncertainty(const tax_report& report);

/// The result in a few sentences: E0, E4 and the bound of a layer, or of an operator, and which tax
/// is the largest, if the figures tell.
[[nodiscard]] std::string finding(const tax_report& report);

/// Fills in `traced` of all rows from the trace that was recorded while they were measured.
void add_traces(tax_report& report, const trace_record& record);

/// The differences between ablation and trace: a sentence for each tax of an operation for which
/// the two differ by more than 5 % of E0, with the other changes between the two steps. Empty
/// without a trace.
[[nodiscard]] std::vector<std::string> trace_differences(const tax_report& report);

/// The abilities of a terminal.
struct text_style {
  bool utf8 = true;
  bool colour = false;
};

/// The report as text of at most `width` columns, or of 80 if that is more.
[[nodiscard]] std::string render_table(const tax_report& report, int width = 100,
                                       text_style style = {});

/// Two reports side by side: machines, commits, the parts of a layer, and E0 and E4 of each
/// operation, as text of at most `width` columns.
[[nodiscard]] std::string render_comparison(const tax_report& first, const tax_report& second,
                                            int width = 100, text_style style = {});

/// The report as JSON, measured and derived values; times in seconds.
[[nodiscard]] std::string to_json(const tax_report& report);

/// Reads the text of `to_json`; derived values are computed again. Throws `invalid_argument`.
[[nodiscard]] tax_report from_json(std::string_view text);

/// The report as one HTML page that needs neither network nor scripts.
[[nodiscard]] std::string render_html(const tax_report& report);

/// The waterfall of a layer, or of the operator, as an SVG picture on white.
[[nodiscard]] std::string render_plot(const tax_report& report);

}  // namespace untax
