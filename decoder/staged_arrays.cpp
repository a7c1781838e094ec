#include "decoder/staged_arrays.hpp"

#include <algorithm>
#include <cstddef>

namespace untax {

staged_arrays::staged_arrays(decoder_operators& d)
    : d_(&d), pages_per_sequence_(d.sequence_pages()) {
  const std::int64_t sequences = d.options.sequences;
  const std::int64_t tokens = d.options.prompt_tokens;
  const std::int64_t padded = d.step_attention(sequences).batch;
  prompt_tokens_ = array(tokens);
  prompt_positions_ = array(tokens);
  prompt_sequences_ = array(tokens);
  prompt_table_ = array(sequences * pages_per_sequence_);
  query_begins_ = array(sequences + 1);
  key_begins_ = array(sequences + 1);
  key_rows_ = array(d.prompt_keys);
  last_rows_ = array(sequences);
  // The last attention of a prompt's tokens may take as many more as it has.
  padding_ = d.takes_each_token() ? d.most_step_batch() : 0;
  const std::int64_t each = padding_ > 0 ? tokens + padding_ : 0;
  token_lengths_ = array(each);
  token_table_ = array(each * pages_per_sequence_);
  step_lengths_ = sequences;
  step_table_ = step_lengths_ + padded;
  step_ = array(step_table_ + padded * pages_per_sequence_);
}

staged_arrays::mirrored staged_arrays::array(std::int64_t count) {
  mirrored result;
  result.values.reserve(static_cast<std::size_t>(count));
  result.memory = d_->backend->allocate(static_cast<std::size_t>(count) * sizeof(std::int32_t));
  return result;
}

void staged_arrays::send(const mirrored& a, stream_ref stream) {
  d_->backend->upload(a.there(), a.values.data(), a.values.size() * sizeof(std::int32_t), stream);
}

/// Pages that a sequence does not have yet are never looked up; the table names the first one.
void staged_arrays::add_pages(mirrored& table, std::span<const std::int32_t> pages) const {
  table.values.insert(table.values.end(), pages.begin(), pages.end());
  table.values.resize(table.values.size() + static_cast<std::size_t>(pages_per_sequence_) -
                      pages.size());
}

void staged_arrays::add_tokens(std::int64_t keys, std::int64_t count,
                               std::span<const std::int32_t> pages) {
  for (std::int64_t i = 0; i < count; ++i) {
    token_lengths_.values.push_back(static_cast<std::int32_t>(keys - count + i + 1));
    add_pages(token_table_, pages);
  }
}

layer_tokens staged_arrays::stage_prompts(const page_allocator& pages,
                                          std::span<const decoder::prompt> prompts,
                                          stream_ref stream) {
  for (mirrored* a :
       {&prompt_tokens_, &prompt_positions_, &prompt_sequences_, &prompt_table_, &query_begins_,
        &key_begins_, &key_rows_, &last_rows_, &token_lengths_, &token_table_}) {
    a->values.clear();
  }
  layer_tokens run;
  const std::int64_t page_size = pages.most().page_size;
  for (const decoder::prompt& p : prompts) {
    const auto count = static_cast<std::int64_t>(p.tokens.size());
    const std::int64_t keys = pages.length(p.sequence);
    const auto own = pages.pages(p.sequence);
    query_begins_.values.push_back(static_cast<std::int32_t>(run.rows));
    key_begins_.values.push_back(static_cast<std::int32_t>(run.keys));
    add_pages(prompt_table_, own);
    for (std::int64_t i = 0; i < count; ++i) {
      prompt_tokens_.values.push_back(p.tokens[static_cast<std::size_t>(i)]);
      prompt_positions_.values.push_back(static_cast<std::int32_t>(keys - count + i));
      prompt_sequences_.values.push_back(static_cast<std::int32_t>(run.batch));
    }
    for (std::int64_t key = 0; key < keys; ++key) {
      const std::int32_t page = own[static_cast<std::size_t>(key / page_size)];
      key_rows_.values.push_back(static_cast<std::int32_t>(page * page_size + key % page_size));
    }
    if (padding_ > 0) add_tokens(keys, count, own);
    run.rows += count;
    run.keys += keys;
    run.batch += 1;
    run.longest_prompt = std::max(run.longest_prompt, count);
    run.most_keys = std::max(run.most_keys, keys);
    last_rows_.values.push_back(static_cast<std::int32_t>(run.rows - 1));
  }
  query_begins_.values.push_back(static_cast<std::int32_t>(run.rows));
  key_begins_.values.push_back(static_cast<std::int32_t>(run.keys));
  for (const mirrored* a : {&prompt_tokens_, &prompt_positions_, &prompt_sequences_, &prompt_table_,
                            &query_begins_, &key_begins_, &key_rows_, &last_rows_}) {
    send(*a, stream);
  }
  if (padding_ > 0) {
    token_lengths_.values.resize(static_cast<std::size_t>(run.rows + padding_));
    send(token_lengths_, stream);
    send(token_table_, stream);
    run.token_lengths = token_lengths_.there();
    run.token_pages = token_table_.there();
  }
  run.positions = prompt_positions_.there();
  run.sequences = prompt_sequences_.there();
  run.page_table = prompt_table_.there();
  run.query_begins = query_begins_.there();
  run.key_begins = key_begins_.there();
  run.key_rows = key_rows_.there();
  return run;
}

void staged_arrays::stage_step(const page_allocator& pages, std::span<const int> sequences,
                               stream_ref stream) {
  // The attention of a step takes more sequences than there are; those are empty.
  step_.values.assign(static_cast<std::size_t>(step_table_), 0);
  auto position = step_.values.begin();
  auto length = position + step_lengths_;
  for (const int sequence : sequences) {
    *length = static_cast<std::int32_t>(pages.length(sequence));
    *position++ = *length++ - 1;
  }
  for (const int sequence : sequences) add_pages(step_, pages.pages(sequence));
  send(step_, stream);
}

layer_tokens staged_arrays::step_tokens(std::int64_t rows) const {
  layer_tokens run;
  run.rows = rows;
  run.batch = rows;
  run.positions = step_.there();
  run.page_table = step_.there() + step_table_;
  run.lengths = step_.there() + step_lengths_;
  return run;
}

}  // namespace untax
