#pragma once

#include <cstdint>

#include <untax/ops/collective.hpp>

namespace untax {

// For all collectives: `w` has to outlive the operator.
//
// Constructors are collective. They throw `invalid_argument`, `disagreement` if ranks plan
// different problems, `out_of_memory`, and `unsupported` in a world of more GPUs than kernels are
// made for.
//
// `run` is collective, and one epoch. It throws `invalid_argument` before anything is sent, and
// `timeout`, `peer_lost` or `aborted` if a wait fails. When it returns, this rank's result is
// complete and its input may be changed again. The result must not share memory with the input,
// unless `run` says how it may be in place. With `varying_count` the arrays of a run say its count;
// then `run` also throws `disagreement` if a rank has another count.
//
// In a world of GPUs both arrays are in memory of the rank's GPU, which is the current device of
// the calling thread. With a stream `run` is asynchronous: it launches kernels on the stream,
// allocates and reads back nothing, and can be captured in a CUDA graph. `world::check` throws the
// error of a failed wait after the kernels have ended. Without a stream the run starts after the
// work in the default stream, and returns as above. Runs of a world take place in the order of the
// calls, which is the same at all ranks, also on several streams and in graphs (docs/design.md,
// "The order of runs").

/// Every rank ends with the shards of all ranks. ops/all_gather/README.md draws it.
class all_gather : public collective {
 public:
  all_gather(world& w, const all_gather_problem& problem, const collective_options& options = {});

  /// `in`: this rank's shard. `out`: all `count` elements, written. In place if `in` is this rank's
  /// part of `out`. With `varying_count`, `out` says the count.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// The number of elements of a rank's input, which is its shard, and of its result.
  [[nodiscard]] static std::int64_t in_count(const all_gather_problem& problem, int world,
                                             int rank);
  [[nodiscard]] static std::int64_t out_count(const all_gather_problem& problem, int world,
                                              int rank);

 private:
  all_gather_problem problem_;
};

/// Rank r ends with shard r of the combination of all inputs. ops/reduce_scatter/README.md draws
/// it.
class reduce_scatter : public collective {
 public:
  reduce_scatter(world& w, const reduce_scatter_problem& problem,
                 const collective_options& options = {});

  /// `in`: `count` elements. `out`: this rank's shard, written. In place if `out` is this rank's
  /// part of `in`. With `varying_count`, `in` says the count.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// The number of elements of a rank's input, and of its result, which is its shard.
  [[nodiscard]] static std::int64_t in_count(const reduce_scatter_problem& problem, int world,
                                             int rank);
  [[nodiscard]] static std::int64_t out_count(const reduce_scatter_problem& problem, int world,
                                              int rank);

 private:
  reduce_scatter_problem problem_;
};

/// Every rank ends with the combination of all inputs, with the same bits everywhere and for any
/// timing. ops/all_reduce/README.md draws it.
class all_reduce : public collective {
 public:
  all_reduce(world& w, const all_reduce_problem& problem, const collective_options& options = {});

  /// `in` and `out`: `count` elements. In place if they are the same array; but with one phase not
  /// in fused_specialized or with `direct`, where a rank would overwrite elements that others still
  /// read. With `varying_count`, `out` says the count.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// The number of elements of a rank's input, and of its result.
  [[nodiscard]] static std::int64_t in_count(const all_reduce_problem& problem, int world,
                                             int rank);
  [[nodiscard]] static std::int64_t out_count(const all_reduce_problem& problem, int world,
                                              int rank);

 private:
  all_reduce_problem problem_;
};

/// Every rank ends with the parts that all ranks have for it. ops/all_to_all/README.md draws it.
class all_to_all : public collective {
 public:
  all_to_all(world& w, const all_to_all_problem& problem, const collective_options& options = {});

  /// `in`: the parts for rank 0, 1, ...; `out`: the parts of rank 0, 1, ..., written. They must not
  /// share memory. With `varying_count`, `in` says the count: W parts of equal size.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// The number of elements of part (from, to). Throws `invalid_argument` for counts that are not
  /// those of this many ranks, as `in_count` and `out_count` do.
  [[nodiscard]] static std::int64_t part(const all_to_all_problem& problem, int world, int from,
                                         int to);
  /// The number of elements of a rank's input and of its result, with its part for itself.
  [[nodiscard]] static std::int64_t in_count(const all_to_all_problem& problem, int world,
                                             int rank);
  [[nodiscard]] static std::int64_t out_count(const all_to_all_problem& problem, int world,
                                              int rank);

 private:
  all_to_all_problem problem_;
};

/// Every rank ends with the elements of the root. ops/broadcast/README.md draws it.
class broadcast : public collective {
 public:
  broadcast(world& w, const broadcast_problem& problem, const collective_options& options = {});

  /// `in`: `count` elements at the root; other ranks ignore it. `out`: `count` elements, written.
  /// In place if they are the same array. With `varying_count`, `out` says the count.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// The number of elements of a rank's input, and of its result.
  [[nodiscard]] static std::int64_t in_count(const broadcast_problem& problem, int world, int rank);
  [[nodiscard]] static std::int64_t out_count(const broadcast_problem& problem, int world,
                                              int rank);

 private:
  broadcast_problem problem_;
};

}  // namespace untax
