#include <untax/trace/session.hpp>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <untax/core/environment.hpp>
#include <untax/core/error.hpp>
#include <untax/core/process_owned.hpp>

#include "trace_file.hpp"

namespace untax {
namespace {

/// The most events that are kept of operators that have ended; further events are only counted.
constexpr std::uint64_t most_events_kept = std::uint64_t{1} << 21;

class session {
 public:
  session() = default;
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  /// The process exits, so an error cannot be reported any more.
  ~session() {
    try {
      end();
    } catch (const std::exception&) {
      return;
    }
  }

  void start(const trace_options& options) {
    const std::scoped_lock lock(mutex_);
    if (running_) {
      throw error(errc::invalid_argument,
                  fmt::format("a trace is being recorded already, for {}; end that one first",
                              options_.path.empty() ? "no file" : options_.path));
    }
    if (!options.path.empty()) require_writable(options.path);
    options_ = options;
    if (options_.events_per_worker == 0) options_.events_per_worker = 1;
    record_ = {};
    kept_ = 0;
    made_in_ = process_generation();
    running_ = true;
  }

  trace_record stop() {
    const std::scoped_lock lock(mutex_);
    if (!running_) {
      throw error(errc::invalid_argument, "no trace is being recorded; start one first");
    }
    trace_record record = take();
    if (!options_.path.empty()) record = write_trace(options_.path, std::move(record));
    return record;
  }

  void end() {
    const std::scoped_lock lock(mutex_);
    if (!running_ || made_in_ != process_generation()) return;
    trace_record record = take();
    if (!options_.path.empty() && !record.operators.empty())
      (void)write_trace(options_.path, std::move(record));
  }

  [[nodiscard]] bool running() const noexcept { return running_; }
  [[nodiscard]] std::size_t room() const noexcept { return options_.events_per_worker; }

  void add(std::shared_ptr<const trace_source> source) {
    const std::scoped_lock lock(mutex_);
    sources_.push_back(std::move(source));
  }
  void forget(const trace_source& source) {
    const std::scoped_lock lock(mutex_);
    for (auto it = sources_.begin(); it != sources_.end(); ++it) {
      if (it->get() != &source) continue;
      keep(source.collect());
      sources_.erase(it);
      return;
    }
  }

 private:
  /// Returns the record and ends recording.
  trace_record take() {
    for (const auto& source : sources_) keep(source->collect());
    sources_.clear();
    running_ = false;
    return std::exchange(record_, {});
  }
  void keep(traced_operator op) {
    trace_record record{{std::move(op)}};
    kept_ += record.events();
    traced_operator& mine = record.operators.front();
    if (kept_ > most_events_kept) {
      mine.lost += record.events();
      mine.calls.clear();
      for (auto& spans : mine.workers) spans.clear();
    }
    record_.operators.push_back(std::move(mine));
  }

  std::mutex mutex_;
  trace_options options_;
  std::atomic<bool> running_ = false;
  std::uint64_t made_in_ = 0;
  std::vector<std::shared_ptr<const trace_source>> sources_;
  trace_record record_;
  std::uint64_t kept_ = 0;
};

session& the_session() {
  static session instance;
  return instance;
}

/// Starts the trace that UNTAX_TRACE asks for, once per process. Each call throws its error.
void follow_environment() {
  struct refusal {
    errc code;
    std::string text;
  };
  // The initialiser must not throw: under ThreadSanitizer, threads that wait for it would then wait
  // for ever.
  static const std::optional<refusal> refused = []() -> std::optional<refusal> {
    const auto path = environment().text(variable::trace);
    if (!path || the_session().running()) return {};
    try {
      the_session().start({.path = *path});
      return {};
    } catch (const error& e) {
      return refusal{e.code(),
                     fmt::format("{} is \"{}\": {}", variable::trace.name, *path, e.what())};
    }
  }();
  if (refused) throw error(refused->code, refused->text);
}

thread_local std::string label_of_this_thread;
thread_local int pauses_of_this_thread = 0;

}  // namespace

void start_trace(const trace_options& options) { the_session().start(options); }

trace_record stop_trace() { return the_session().stop(); }

void end_trace() { the_session().end(); }

bool is_tracing() {
  follow_environment();
  return the_session().running() && pauses_of_this_thread == 0;
}

std::size_t trace_room() { return the_session().room(); }

void add_source(std::shared_ptr<const trace_source> source) {
  the_session().add(std::move(source));
}

void forget_source(const trace_source& source) { the_session().forget(source); }

trace_label::trace_label(std::string text)
    : before_(std::exchange(label_of_this_thread, std::move(text))) {}

trace_label::~trace_label() { label_of_this_thread = std::move(before_); }

trace_pause::trace_pause() { ++pauses_of_this_thread; }

trace_pause::~trace_pause() { --pauses_of_this_thread; }

const std::string& trace_label::current() noexcept { return label_of_this_thread; }

}  // namespace untax
