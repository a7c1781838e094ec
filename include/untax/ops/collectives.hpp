#pragma once

#include <cstdint>

#include <untax/ops/collective.hpp>

namespace untax {

// `w` has to outlive the operator. Constructors throw `invalid_argument`, `disagreement`,
// `out_of_memory` and, in a world of more GPUs than kernels are made for, `unsupported`; `run`,
// which is collective and one epoch, throws `invalid_argument` before anything moves, and
// `timeout`, `peer_lost` or `aborted` when a wait fails. When it returns, this rank's result is
// complete and its input is its own again. Results lie apart from the input or, where that is said,
// in place. With `varying_count` the arrays of a run say its count; then `run` also throws
// `disagreement` if a rank has another one.
//
// In a world of GPUs both lie in memory of the rank's GPU, which is the current one of the calling
// thread. With a stream `run` is asynchronous: it launches kernels on the stream, allocates and
// reads back nothing, and can be captured in a CUDA graph; a wait that failed is thrown by
// `world::check` after they have ended. Without one it begins behind what the default stream has,
// and returns as above. The runs of one operator are in order: on one stream, or made so by events.
// So are those of different operators of a world, in the same order at all ranks: the kernels of
// one may need all multiprocessors, and wait for peers.

/// Every rank ends with the shards of all. ops/all_gather/README.md draws it.
class all_gather : public collective {
 public:
  all_gather(world& w, const all_gather_problem& problem, const collective_options& options = {});

  /// `in`: this rank's shard. `out`: all `count` elements, written; in place if `in` is this rank's
  /// part of `out`.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// Elements of a rank's input, its shard, and of its result.
  [[nodiscard]] static std::int64_t in_count(const all_gather_problem& problem, int world,
                                             int rank);
  [[nodiscard]] static std::int64_t out_count(const all_gather_problem& problem, int world,
                                              int rank);

 private:
  all_gather_problem problem_;
};

/// Rank r ends with shard r of what all inputs come to together. ops/reduce_scatter/README.md draws
/// it.
class reduce_scatter : public collective {
 public:
  reduce_scatter(world& w, const reduce_scatter_problem& problem,
                 const collective_options& options = {});

  /// `in`: `count` elements. `out`: this rank's shard, written; in place if it is this rank's part
  /// of `in`.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// Elements of a rank's input, and of its result, its shard.
  [[nodiscard]] static std::int64_t in_count(const reduce_scatter_problem& problem, int world,
                                             int rank);
  [[nodiscard]] static std::int64_t out_count(const reduce_scatter_problem& problem, int world,
                                              int rank);

 private:
  reduce_scatter_problem problem_;
};

/// Every rank ends with what all inputs come to together, the same bits everywhere and for any
/// timing. ops/all_reduce/README.md draws it.
class all_reduce : public collective {
 public:
  all_reduce(world& w, const all_reduce_problem& problem, const collective_options& options = {});

  /// `in` and `out`: `count` elements; in place if they are the same (not with one phase in
  /// fused_specialized or directly, where some read what others would overwrite).
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// Elements of a rank's input, and of its result.
  [[nodiscard]] static std::int64_t in_count(const all_reduce_problem& problem, int world,
                                             int rank);
  [[nodiscard]] static std::int64_t out_count(const all_reduce_problem& problem, int world,
                                              int rank);

 private:
  all_reduce_problem problem_;
};

/// Every rank ends with the parts that the others have for it. ops/all_to_all/README.md draws it.
class all_to_all : public collective {
 public:
  all_to_all(world& w, const all_to_all_problem& problem, const collective_options& options = {});

  /// `in`: the parts for rank 0, 1, ...; `out`: the parts of rank 0, 1, ..., written.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// Elements of part (from, to).
  [[nodiscard]] static std::int64_t part(const all_to_all_problem& problem, int world, int from,
                                         int to);
  /// Elements that a rank has for all, itself included, and that it gets.
  [[nodiscard]] static std::int64_t in_count(const all_to_all_problem& problem, int world,
                                             int rank);
  [[nodiscard]] static std::int64_t out_count(const all_to_all_problem& problem, int world,
                                              int rank);

 private:
  all_to_all_problem problem_;
};

/// Every rank ends with what the root has. ops/broadcast/README.md draws it.
class broadcast : public collective {
 public:
  broadcast(world& w, const broadcast_problem& problem, const collective_options& options = {});

  /// `in`: `count` elements at the root; looked at nowhere else. `out`: `count` elements, written;
  /// in place if they are the same.
  void run(const const_array_view& in, const array_view& out, stream_ref stream = {});

  /// Elements of a rank's input, and of its result.
  [[nodiscard]] static std::int64_t in_count(const broadcast_problem& problem, int world, int rank);
  [[nodiscard]] static std::int64_t out_count(const broadcast_problem& problem, int world,
                                              int rank);

 private:
  broadcast_problem problem_;
};

}  // namespace untax
