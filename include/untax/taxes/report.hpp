#pragma once

#include <array>
#include <optional>
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
  /// The timeline of one run, for pages only: of E1 and E4. Pages show the operation with the
  /// longest E0. JSON does not have it; the trace does.
  std::vector<timeline_piece> timeline = {};
  bool operator==(const traced_step&) const = default;
};

/// The parts of the time of E0, in seconds. They add up to E0. docs/design.md, section 10, says how
/// they follow from the steps. A part that is not separable is 0 here.
struct tax_breakdown {
  double launch = 0;            ///< E0 - E1
  double engine = 0;            ///< E1 - E2
  double bulk_synchronous = 0;  ///< E2 - E3
  double locality = 0;          ///< E3 - E4
  double remainder = 0;         ///< E4 - bound
  double bound = 0;             ///< the larger of compute and transfers alone
  double joint = 0;             ///< parts that are not separable, together
  double stand_in = 0;          ///< less the costs of stand-ins that E4 still has; never positive

  [[nodiscard]] double total() const noexcept {
    return bound + remainder + stand_in + joint + locality + bulk_synchronous + engine + launch;
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
extern const std::array<tax_part, 8> tax_parts;

/// Whether a part collects what has no figure of its own: `joint` and `stand_in`. It may be absent.
[[nodiscard]] bool is_sum(const tax_part& part) noexcept;

/// The cost of a stand-in: what a step took more than the step before it, beyond chance.
struct stand_in_cost {
  std::string id;      ///< the step: "E1" to "E4"
  std::string before;  ///< the step that it was slower than
  double seconds = 0;
  double uncertainty = 0;
  bool counted = false;  ///< in `tax_breakdown::stand_in`, since E4 may still have it
  bool operator==(const stand_in_cost&) const = default;
};

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
  /// The parts of this operation's E0 in `report`. None but `stand_in` is negative by more than its
  /// uncertainty. A single rank has no E3, and no bulk-synchronous tax.
  [[nodiscard]] tax_breakdown breakdown(const tax_report& report) const;
  /// Whether `part` has a figure of its own; for `joint` and `stand_in`, whether there is one.
  [[nodiscard]] bool separates(const tax_part& part, const tax_report& report) const;
  /// The reason why parts are not separable: "E2 was not measured, so ..."; empty if all are.
  [[nodiscard]] std::string why_not_separable(const tax_report& report) const;
  /// In the order of the steps.
  [[nodiscard]] std::vector<stand_in_cost> stand_ins(const tax_report& report) const;
  /// The uncertainty of each part: in about 95 % of cases chance has moved it by less. It follows
  /// from the spread of the two times whose difference the part is, and from the number of runs. It
  /// is infinite for one run, which has no spread.
  [[nodiscard]] tax_breakdown uncertainty(const tax_report& report) const;
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

/// The parts that `report` has: all, without the joint tax and the cost of stand-ins if no
/// operation has one.
[[nodiscard]] std::vector<tax_part> shown_parts(const tax_report& report);
/// Whether any operation has a figure for `part`, so that sums have one.
[[nodiscard]] bool separates(const tax_part& part, const tax_report& report);
/// In place of the figure of a part that has none.
inline constexpr std::string_view not_separable = "not separable";

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

/// Fills in `traced` of a row, or of all rows, from the trace that was recorded while they were
/// measured.
void add_trace(tax_row& row, const trace_record& record);
void add_traces(tax_report& report, const trace_record& record);
/// Leaves timelines to the operation with the longest E0 of all its occurrences.
void keep_longest_timeline(tax_report& report);

/// A tax of an operation, or several that are not separable, by ablation and by the trace.
struct traced_tax {
  std::string operation;
  std::string tax;            ///< "launch tax", "bulk-synchronous tax and locality tax"
  std::string before, after;  ///< the steps whose times differ by the tax
  double by_ablation = 0;
  double uncertainty = 0;  ///< of `by_ablation`
  double by_trace = 0;
  /// Whether both have the same sign; nothing if the tax is not larger than its uncertainty.
  std::optional<bool> agrees;
  /// "" if both agree in sign and differ by no more than 5 % of E0, else a sentence with what else
  /// changed most between the two steps.
  std::string difference;
};
/// The two accounts of each tax that has a figure. Empty without a trace.
[[nodiscard]] std::vector<traced_tax> traced_taxes(const tax_report& report);
/// A sentence about how many of them agree in sign, or that there is no second account.
[[nodiscard]] std::string agreement_text(const tax_report& report);

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
