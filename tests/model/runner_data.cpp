// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What a program's buffers hold before and after each call, by the plan and not by the code under
// test.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "program_run.h"

namespace accord::model {

namespace {

// A block to each rank, resp. from each rank.
bool sends_blocks(Collective kind) {
  return kind == Collective::alltoall || kind == Collective::scatter ||
         kind == Collective::scatterv || kind == Collective::reduce_scatter_block ||
         kind == Collective::reduce_scatter;
}
bool receives_blocks(Collective kind) {
  return kind == Collective::alltoall || kind == Collective::allgather ||
         kind == Collective::allgatherv || kind == Collective::gather ||
         kind == Collective::gatherv;
}
bool scatters_a_reduction(Collective kind) { return sends_blocks(kind) && is_reduction(kind); }

}  // namespace

std::vector<std::int64_t> Run::values(const Ref& ref, int who, std::size_t first,
                                      std::size_t count) const {
  std::vector<std::int64_t> result(count);
  const auto salt = static_cast<std::int64_t>(program_.salt);
  for (std::size_t i = 0; i < count; ++i)
    result[i] = value_of(ref.event, ref.round, who, first + i) ^ salt;
  return result;
}

// What this participant sends (or holds in place).
std::vector<std::int64_t> Run::input(const Ref& ref) const {
  const Event& what = event(ref);
  const bool blocks = what.kind == Event::Kind::collective && sends_blocks(what.collective);
  const auto part = static_cast<std::size_t>(ref.part);
  if (has_uneven_pairs(what.collective))
    return values(ref, ref.part, 0, what.elements_sent(part, what.parts.size()));
  return values(ref, ref.part, 0,
                blocks ? what.elements_before(what.parts.size()) : what.block_elements_of(part));
}

std::vector<std::int64_t> Run::expected(const Ref& ref) const {
  const Event& what = event(ref);
  if (what.collective == Collective::bcast) return values(ref, what.root, 0, what.elements);
  const auto part = static_cast<std::size_t>(ref.part);
  const bool blocks = sends_blocks(what.collective);
  const std::size_t own_first = blocks ? what.elements_before(part) : 0;
  if (what.collective == Collective::scatter || what.collective == Collective::scatterv)
    return values(ref, what.root, own_first, what.block_elements_of(part));
  std::vector<std::int64_t> result;
  if (has_uneven_pairs(what.collective)) {
    for (std::size_t who = 0; who < what.parts.size(); ++who) {
      const auto from = values(ref, static_cast<int>(who), what.elements_sent(who, part),
                               what.pair_elements(who, part));
      result.insert(result.end(), from.begin(), from.end());
    }
    return result;
  }
  const int end = what.collective == Collective::scan     ? ref.part + 1
                  : what.collective == Collective::exscan ? ref.part
                                                          : static_cast<int>(what.parts.size());
  for (int who = 0; who < end; ++who) {
    const auto from = values(ref, who, own_first,
                             what.block_elements_of(blocks ? part : static_cast<std::size_t>(who)));
    if (what.op == Op::none) {
      result.insert(result.end(), from.begin(), from.end());
      continue;
    }
    if (who == 0) result = from;
    for (std::size_t i = 0; i < result.size() && who > 0; ++i) {
      result[i] = combine(what.op, result[i], from[i]);
    }
  }
  const bool keeps_input = scatters_a_reduction(what.collective) || end == 0;
  if (keeps_input && what.in_place) {
    const auto rest = input(ref);  // lies behind the result, if there is one, as it was
    result.insert(result.end(), rest.begin() + static_cast<std::ptrdiff_t>(result.size()),
                  rest.end());
  }
  return result;
}

void Run::make_buffers(const Ref& ref, Call& made) {
  const Event& what = event(ref);
  const End& send = part(ref).send;
  const End& recv = part(ref).recv;
  const std::size_t parts = what.parts.size();
  const auto own = static_cast<std::size_t>(ref.part);
  const bool of_pairs = has_uneven_pairs(what.collective);
  std::size_t send_elements =
      of_pairs ? what.elements_sent(own, parts) : what.block_elements_of(own);
  std::size_t recv_elements = of_pairs ? what.elements_received(own, parts) : send_elements;
  if (what.kind == Event::Kind::collective && of_pairs) {
    if (!what.in_place) made.send = make_buffer(ref, send, send_elements);
    made.recv = make_buffer(ref, recv, recv_elements);
  } else if (what.kind == Event::Kind::collective) {
    const std::size_t all_elements = what.elements_before(parts);
    if (sends_blocks(what.collective)) send_elements = all_elements;
    if (receives_blocks(what.collective)) recv_elements = all_elements;
    if (what.in_place && scatters_a_reduction(what.collective)) recv_elements = all_elements;
    const bool is_root = ref.part == what.root;
    const bool scatter =
        what.collective == Collective::scatter || what.collective == Collective::scatterv;
    const bool to_root = what.collective == Collective::reduce ||
                         what.collective == Collective::gather ||
                         what.collective == Collective::gatherv;
    const bool has_recv = scatter ? !(what.in_place && is_root) : !to_root || is_root;
    const bool has_send =
        scatter ? is_root : what.collective != Collective::bcast && !(what.in_place && has_recv);
    if (has_send) made.send = make_buffer(ref, send, send_elements);
    if (has_recv) made.recv = make_buffer(ref, recv, recv_elements);
  } else if (what.receives(static_cast<std::size_t>(ref.part))) {
    made.recv = make_buffer(ref, recv, what.elements + what.spare_elements);
  } else {
    made.send = make_buffer(ref, send, send_elements);
  }
}

std::unique_ptr<UserBuffer> Run::make_buffer(const Ref& ref, End end, std::size_t elements) {
  if (!on_devices_) end.place = Place::host;
  BufferPool& pool = *pools_[static_cast<std::size_t>(part(ref).rank)];
  return std::make_unique<UserBuffer>(end, elements, event(ref).block_elements, &pool);
}

// Fills the inputs of a round, poisons its outputs.
void Run::prepare(const Ref& ref) {
  Call& made = call(ref);
  const Event& what = event(ref);
  if (!persistent(ref)) make_buffers(ref, made);
  made.sent = input(ref);
  if (made.send) made.send->fill(made.sent);
  if (!made.recv) return;
  made.recv->poison();
  const bool is_bcast_root = what.collective == Collective::bcast && ref.part == what.root;
  const bool holds_input = what.in_place && what.collective != Collective::scatter &&
                           what.collective != Collective::scatterv;
  if (what.kind == Event::Kind::collective && (holds_input || is_bcast_root)) {
    if (what.collective != Collective::alltoall &&
        receives_blocks(what.collective)) {  // this rank's block lies at its place
      std::vector<std::int64_t> all(what.elements_before(what.parts.size()));
      const auto offset =
          static_cast<std::ptrdiff_t>(what.elements_before(static_cast<std::size_t>(ref.part)));
      std::copy(made.sent.begin(), made.sent.end(), all.begin() + offset);
      made.recv->fill(all);
    } else {
      made.recv->fill(made.sent);
    }
  }
}

CollectiveArgs Run::arguments(const Ref& ref, const Call& made) {
  const Event& what = event(ref);
  CollectiveArgs args{
      .kind = what.collective, .op = what.op, .root = what.root, .in_place = what.in_place};
  const auto own = static_cast<std::size_t>(ref.part);
  for (std::size_t member = 0; member < what.parts.size() && !what.weights.empty(); ++member) {
    const bool of_pairs = has_uneven_pairs(what.collective);
    const std::size_t received =
        of_pairs ? what.pair_elements(member, own) : what.block_elements_of(member);
    args.blocks_bytes.push_back(received * sizeof(std::int64_t));
    if (of_pairs) args.sent_bytes.push_back(what.pair_elements(own, member) * sizeof(std::int64_t));
  }
  if (made.send) args.send = made.send->argument();
  if (made.recv) args.recv = made.recv->argument();
  if (what.collective == Collective::barrier || !what.children.empty()) args.send = args.recv = {};
  if (!what.children.empty()) {
    args.color = what.colors.empty() ? 0 : what.colors[static_cast<std::size_t>(ref.part)];
    args.created = &comm(part(ref).rank, what.children[static_cast<std::size_t>(args.color)]);
  }
  return args;
}

void Run::completed(const Ref& ref, const MessageStatus& status) {
  Progress& state = progress(ref);
  Call& made = call(ref);
  state.done = true;
  if (made.send) {
    if (const auto wrong = made.send->difference(made.sent); !wrong.empty())
      complain(ref, "send buffer: " + wrong);
  }
  if (event(ref).kind == Event::Kind::collective) {
    check_collective(ref);
  } else if (made.recv) {
    check_received(ref, status);
  }
  // The buffers are the program's own again: it uses them otherwise at once.
  for (auto* buffer : {&made.send, &made.recv}) {
    if (*buffer == nullptr) continue;
    (*buffer)->poison();
    if ((*buffer)->is_of_pool() && !persistent(ref)) buffer->reset();
  }
}

void Run::check_received(const Ref& ref, const MessageStatus& status) {
  const Event& what = event(ref);
  Call& made = call(ref);
  if (what.kind == Event::Kind::cancelled) {
    if (!status.cancelled) complain(ref, "the cancelled receive completed otherwise");
    if (const auto wrong = made.recv->difference({}); !wrong.empty()) complain(ref, wrong);
    return;
  }
  if (status.size_bytes != what.elements * sizeof(std::int64_t) || status.tag != what.tag) {
    complain(ref, fmt::format("the status tells {} bytes, tag {}", status.size_bytes, status.tag));
  }
  int sender = 0;
  const int senders = static_cast<int>(what.senders());
  while (sender < senders &&
         rank_in(what.comm, what.parts[static_cast<std::size_t>(sender)].rank) != status.source) {
    ++sender;
  }
  if (sender == senders) complain(ref, fmt::format("the status tells source {}", status.source));
  const auto wrong = made.recv->difference(values(ref, sender, 0, what.elements));
  if (!wrong.empty()) complain(ref, "receive buffer: " + wrong);
}

// Of the receive buffer, those that the standard defines.
std::size_t Run::result_elements(const Ref& ref) const {
  const Event& what = event(ref);
  if (what.collective == Collective::exscan && ref.part == 0) return 0;
  return scatters_a_reduction(what.collective)
             ? what.block_elements_of(static_cast<std::size_t>(ref.part))
             : SIZE_MAX;
}

void Run::check_collective(const Ref& ref) {
  const Event& what = event(ref);
  Call& made = call(ref);
  if (!made.recv || what.elements == 0) return;
  const auto values = expected(ref);
  const std::size_t checked = host_.keeps_rest() ? SIZE_MAX : result_elements(ref);
  const auto wrong = made.recv->difference(values, checked);
  if (!wrong.empty())
    complain(ref, std::string(name_of(what.collective)) + ", receive buffer: " + wrong);
}

template <class Visit>
void Run::for_each_ref(Visit&& visit) const {
  for (int number = 0; number < static_cast<int>(program_.events.size()); ++number) {
    const Event& what = program_.events[static_cast<std::size_t>(number)];
    for (int round = 0; round < what.rounds; ++round) {
      for (int index = 0; index < static_cast<int>(what.parts.size()); ++index)
        visit(Ref{number, round, index});
    }
  }
}

// Requests freed while active: their data is checked once everything has ended.
std::string Run::freed_problem() {
  std::string problem;
  for_each_ref([&](const Ref& ref) {
    const Call& made = call(ref);
    if (!problem.empty() || !progress(ref).freed || !made.recv) return;
    const auto wrong = made.recv->difference(values(ref, 0, 0, event(ref).elements));
    if (!wrong.empty()) problem = complaint(ref, "receive freed while active: " + wrong);
  });
  return problem;
}

// The rest must still be as it was left, or something was written late.
void Run::check_ended() {
  if (const std::string problem = freed_problem(); !problem.empty()) host_.fail(problem);
  for_each_ref([&](const Ref& ref) {
    const Call& made = call(ref);
    if (!progress(ref).done || !made.recv || persistent(ref)) return;
    if (const auto wrong = made.recv->difference({}); !wrong.empty())
      complain(ref, "written late: " + wrong);
  });
}

}  // namespace accord::model
