#pragma once

#include <string>
#include <vector>

#include "ops/all_gather_gemm/lowered.hpp"

namespace untax {

/// Translation validation: what senders of a planned gather do by the numbers and tensor maps that
/// their kernel is given, each of them at each turn, against the lists that its program was lowered
/// to. Says what differs; nothing if the kernel does what the program says.
[[nodiscard]] std::vector<std::string> faults_of_senders(const all_gather_gemm_problem& problem,
                                                         const gather_plan& plan,
                                                         const all_gather_gemm_protocol& how,
                                                         const gather_lists& lists,
                                                         const gather_numbers& numbers);

/// The same for a gather whose senders send packets: `lists` are those of its packets, one sender
/// for each thread.
[[nodiscard]] std::vector<std::string> faults_of_packets(const all_gather_gemm_problem& problem,
                                                         const gather_plan& plan,
                                                         const gather_lists& lists,
                                                         const gather_numbers& numbers);

/// All that can be wrong with what a rank has planned: what it sends, and what its CTAs read and
/// wait for.
[[nodiscard]] std::vector<std::string> faults_of(const all_gather_gemm_problem& problem,
                                                 const gather_plan& plan);
/// Throws `internal` if there is any.
void require_faultless(const all_gather_gemm_problem& problem, const gather_plan& plan);

}  // namespace untax
