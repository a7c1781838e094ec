#include <untax/flow/wait_graph.hpp>

#include <algorithm>
#include <sstream>

#include "src/flow/reports.hpp"
#include "support.hpp"

namespace {

using untax::rank_state;
using untax::verb;
using untax::wait_graph;

wait_graph::waiter waiting(int rank, int peer, int room = 3) {
  return {rank, {"all_gather_gemm", verb::acquire, peer, room, 4, 3, 1'000'000'000}};
}

constexpr std::uint64_t now = 3'500'000'000;

std::vector<rank_state> all(int ranks, rank_state state = rank_state::running) {
  return std::vector<rank_state>(static_cast<std::size_t>(ranks), state);
}

TEST(wait_graph, finds_a_cycle_of_three) {
  const wait_graph graph(all(4), {waiting(0, 1), waiting(1, 2), waiting(2, 0), waiting(3, 1)});
  EXPECT_EQ(graph.cycle(0), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(graph.suspect(0), 1);
  EXPECT_EQ(graph.cycle(3), (std::vector<int>{1, 2, 0}));
  EXPECT_EQ(graph.suspect(3), 1);
  EXPECT_EQ(graph.text(0, now),
            "Who waits for whom:\n"
            "  rank 0 waits for rank 1: all_gather_gemm acquire, room 3, needs 4, has 3, 2.5 s\n"
            "  rank 1 waits for rank 2: all_gather_gemm acquire, room 3, needs 4, has 3, 2.5 s\n"
            "  rank 2 waits for rank 0: all_gather_gemm acquire, room 3, needs 4, has 3, 2.5 s\n"
            "  rank 3 waits for rank 1: all_gather_gemm acquire, room 3, needs 4, has 3, 2.5 s\n"
            "Cycle: rank 0 -> rank 1 -> rank 2 -> rank 0");
}

TEST(wait_graph, follows_a_chain_to_its_end) {
  std::vector<rank_state> states = all(4);
  const std::vector<wait_graph::waiter> waits = {waiting(0, 1), waiting(1, 2), waiting(2, 3)};
  EXPECT_EQ(wait_graph(states, waits).suspect(0), 3);
  EXPECT_EQ(wait_graph(states, waits).describe(3), "rank 3 is running and waits for nobody");
  states[3] = rank_state::finished;
  const wait_graph graph(states, waits);
  EXPECT_EQ(graph.suspect(0), 3);
  EXPECT_TRUE(graph.cycle(0).empty());
  EXPECT_NE(graph.text(0, now).find("\n  rank 3 finished"), std::string::npos)
      << graph.text(0, now);
  EXPECT_EQ(graph.text(0, now).find("Cycle"), std::string::npos);
}

TEST(wait_graph, blames_the_dead_before_the_cycle) {
  // Ranks 0 and 1 wait for each other as well, as they do in any operator; rank 2 is the reason
  // that no rank goes on.
  std::vector<rank_state> states = all(3);
  const std::vector<wait_graph::waiter> waits = {waiting(0, 1), waiting(1, 0), waiting(1, 2),
                                                 waiting(0, 2)};
  EXPECT_EQ(wait_graph(states, waits).suspect(0), 2) << "it runs, but signals nobody";
  for (const rank_state state : {rank_state::finished, rank_state::failed, rank_state::gone}) {
    states[2] = state;
    EXPECT_EQ(wait_graph(states, waits).suspect(0), 2);
    EXPECT_EQ(wait_graph(states, waits).suspect(1), 2);
  }
  EXPECT_EQ(wait_graph(states, waits).describe(2), "rank 2 is gone (its process ended)");
}

// The longest wait stands first; waits that began together keep their order.
TEST(wait_graph, lists_the_longest_wait_of_a_rank_first) {
  std::vector<wait_graph::waiter> waits = {waiting(0, 1, 5), waiting(0, 1, 6), waiting(0, 1, 7),
                                           waiting(0, 1, 8)};
  const std::uint64_t since[] = {3'000'000'000, 1'000'000'000, 2'000'000'000, 1'000'000'000};
  for (std::size_t i = 0; i < waits.size(); ++i) waits[i].wait.since = since[i];
  const std::string text = wait_graph(all(2), waits).text(0, now);
  std::size_t last = 0;
  for (const char* const room : {"room 6", "room 8", "room 7"}) {
    const std::size_t at = text.find(room);
    ASSERT_NE(at, std::string::npos) << room << " in " << text;
    EXPECT_GT(at, last) << room << " in " << text;
    last = at;
  }
}

// A rank that has ended waits for no peer, whatever the last records of its workers are; a running
// rank without a wait is listed, too.
TEST(wait_graph, gives_the_state_of_ranks_without_waits) {
  std::vector<rank_state> states = all(3);
  states[1] = rank_state::failed;
  const std::vector<wait_graph::waiter> waits = {waiting(0, 1), waiting(0, 2), waiting(1, 2)};
  const wait_graph graph(states, waits);
  const std::string text = graph.text(0, now);
  for (const int rank : {1, 2}) {
    EXPECT_NE(text.find("\n  " + graph.describe(rank)), std::string::npos) << text;
  }
  EXPECT_EQ(text.find("rank 1 waits for"), std::string::npos) << text;
}

TEST(wait_graph, names_each_awaited_rank_once) {
  const wait_graph graph(all(3), {waiting(0, 1), waiting(0, 1), waiting(0, 2)});
  EXPECT_EQ(graph.describe(0), "rank 0 waits for rank 1 and rank 2");
}

TEST(wait_graph, ignores_peers_outside_the_world) {
  std::vector<wait_graph::waiter> waits = {waiting(0, 1), waiting(1, 0), waiting(0, 2)};
  const std::uint64_t progress[] = {7, 9, 3};
  for (std::size_t i = 0; i < waits.size(); ++i) waits[i].wait.progress = progress[i];
  EXPECT_EQ(wait_graph(all(2), waits).suspect(0), 1);
}

TEST(lost_rank, is_never_the_waiting_rank) {
  const world_test::lone_control c(3);
  c.view.set_status(0, untax::rank_status::failed);
  EXPECT_EQ(untax::lost_rank(c.view, nullptr, 0, 1), -1);
  c.view.set_status(2, untax::rank_status::failed);
  EXPECT_EQ(untax::lost_rank(c.view, nullptr, 0, 1), 2);
}

TEST(wait_graph, ignores_the_waits_of_a_dead_rank) {
  std::vector<rank_state> states = all(3);
  states[1] = rank_state::gone;
  const wait_graph graph(states, {waiting(0, 1), waiting(1, 2), waiting(2, 0)});
  EXPECT_EQ(graph.suspect(0), 1);
  EXPECT_TRUE(graph.cycle(0).empty());
}

TEST(wait_graph, a_rank_whose_workers_wait_for_each_other_is_no_cycle) {
  const wait_graph graph(all(2), {waiting(0, 1), waiting(1, 1)});
  EXPECT_TRUE(graph.cycle(0).empty());
  EXPECT_EQ(graph.suspect(0), 1);
  EXPECT_EQ(graph.describe(1), "rank 1 is running; its workers wait for each other");
}

TEST(wait_graph, groups_workers_and_stays_small) {
  std::vector<wait_graph::waiter> waits;
  for (int rank = 0; rank < 64; ++rank) {
    for (int worker = 0; worker < 60; ++worker) {
      waits.push_back(waiting(rank, (rank + 1) % 64, worker % 2 == 0 ? 2147483647 : worker));
      waits.back().wait.operator_name = std::string(32, 'w');
      waits.back().wait.expected = waits.back().wait.seen = ~std::uint64_t{0};
    }
  }
  const std::string text = wait_graph(all(64), waits).text(0, now);
  EXPECT_LT(text.size(), 8000U);
  std::istringstream lines(text);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_LT(count, 70);
  const std::string two = wait_graph(all(2), {waiting(0, 1), waiting(0, 1)}).text(0, now);
  EXPECT_NE(two.find("2.5 s (2 workers)"), std::string::npos) << two;
}

TEST(wait_graph, finds_a_cycle_in_any_graph_that_has_one) {
  auto random = world_test::random_numbers();
  for (int round = 0; round < 500; ++round) {
    const int ranks = 2 + static_cast<int>(random() % 7);
    std::vector<wait_graph::waiter> waits;
    std::vector<std::vector<bool>> reach(static_cast<std::size_t>(ranks),
                                         std::vector<bool>(static_cast<std::size_t>(ranks)));
    for (std::uint64_t i = random() % 12; i > 0; --i) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(ranks));
      const int to = static_cast<int>(random() % static_cast<unsigned>(ranks));
      waits.push_back(waiting(from, to));
      if (from != to) reach[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)] = true;
    }
    const auto edges = reach;
    for (std::size_t k = 0; k < reach.size(); ++k) {
      for (std::size_t i = 0; i < reach.size(); ++i) {
        for (std::size_t j = 0; j < reach.size(); ++j)
          reach[i][j] = reach[i][j] || (reach[i][k] && reach[k][j]);
      }
    }
    const wait_graph graph(all(ranks), waits);
    for (int from = 0; from < ranks; ++from) {
      const auto f = static_cast<std::size_t>(from);
      bool expected = reach[f][f];
      for (std::size_t i = 0; i < reach.size(); ++i)
        expected = expected || (reach[f][i] && reach[i][i]);
      const std::vector<int> ring = graph.cycle(from);
      ASSERT_EQ(!ring.empty(), expected);
      for (std::size_t i = 0; i < ring.size(); ++i) {
        const int next = ring[(i + 1) % ring.size()];
        ASSERT_TRUE(edges[static_cast<std::size_t>(ring[i])][static_cast<std::size_t>(next)]);
      }
      const int suspect = graph.suspect(from);
      ASSERT_TRUE(suspect == from || reach[f][static_cast<std::size_t>(suspect)]);
    }
  }
}

}  // namespace
