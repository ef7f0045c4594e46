// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// What happens in a random program: communicators, messages, collectives, and the order of their
// ticks.
#include <algorithm>

#include "generator.h"

namespace accord::model::generator {

void Generator::add_comm(std::vector<int> members) {
  CommState state;
  const auto ranks = static_cast<std::size_t>(program_.ranks);
  state.available.assign(ranks, 0);
  state.last_start.assign(ranks, 0);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    state.thread.push_back(comms_.empty() ? 0
                                          : static_cast<int>(random_.below(
                                                static_cast<std::uint64_t>(program_.threads))));
  }
  comms_.push_back(std::move(state));
  if (comms_.size() == 1) {
    program_.comms[0] = std::move(members);
  } else {
    program_.comms.push_back(std::move(members));
  }
}

End Generator::random_end(const Event& event) {
  End end;
  if (alike_ && random_.percent(97)) {
    end.place = Place::device_a;
  } else if (random_.percent(device_percent_)) {
    end.place = random_.percent(75)   ? Place::device_a
                : random_.percent(60) ? Place::device_b
                                      : Place::managed;
  }
  if (event.elements > 0 && random_.percent(alike_ ? 3 : 25))
    end.gap_elements = 1 + random_.below(3);
  if (end.place != Place::host && random_.percent(pooled_percent_))
    end.pool = static_cast<int>(random_.below(static_cast<std::uint64_t>(pools_)));
  return end;
}

void Generator::random_shape(Event& event) {
  event.elements = random_.pick(sizes_);
  std::vector<std::size_t> divisors{1};
  for (std::size_t block = 2; block <= event.elements; ++block) {
    if (event.elements % block == 0) divisors.push_back(block);
  }
  event.block_elements = random_.pick(divisors);
}

int Generator::add_event(Event event) {
  last_.emplace_back(event.parts.size(), 0.0);
  program_.events.push_back(std::move(event));
  return static_cast<int>(program_.events.size()) - 1;
}

void Generator::plan_message(Event& event) {
  const auto& members = program_.comms[static_cast<std::size_t>(event.comm)];
  random_shape(event);
  event.tag = 100 + static_cast<int>(program_.events.size());
  event.synchronous = random_.percent(25);
  if (random_.percent(25)) event.spare_elements = event.block_elements * (1 + random_.below(3));
  const auto add_part = [&](int rank) {
    event.parts.push_back(
        {rank, static_cast<int>(random_.below(static_cast<std::uint64_t>(program_.threads))), false,
         random_end(event), random_end(event)});
  };
  if (members.size() > 2 && random_.percent(20)) {
    event.kind = Event::Kind::gathering;
    std::vector<int> senders = members;
    const std::size_t receiver = random_.below(members.size());
    senders.erase(senders.begin() + static_cast<std::ptrdiff_t>(receiver));
    for (const int rank : senders) add_part(rank);
    add_part(members[receiver]);
    const int thread = event.parts.back().thread;
    for (std::size_t i = 1; i < senders.size(); ++i) {
      add_part(members[receiver]);
      event.parts.back().thread = thread;
    }
    return;
  }
  if (random_.percent(4)) {
    event.kind = Event::Kind::cancelled;
    add_part(random_.pick(members));
    return;
  }
  add_part(random_.pick(members));
  add_part(random_.pick(members));
  if (event.parts[0].rank == event.parts[1].rank && random_.percent(70)) {
    event.parts[1].rank = random_.pick(members);
  }
  if (random_.percent(35)) event.rounds = 2 + static_cast<int>(random_.below(3));
  for (Part& part : event.parts) part.persistent = random_.percent(20);
}

void Generator::plan_collective(Event& event) {
  const auto& members = program_.comms[static_cast<std::size_t>(event.comm)];
  event.kind = Event::Kind::collective;
  event.collective = random_.pick(collectives_);
  if (event.collective != Collective::barrier) random_shape(event);
  const bool reduction = is_reduction(event.collective);
  if (reduction) event.op = random_.percent(70) ? Op::sum : Op::min;
  if (reduction && options_.compose_percent > 0 && random_.percent(options_.compose_percent))
    event.op = Op::compose;
  event.root = has_root(event.collective) ? static_cast<int>(random_.below(members.size())) : 0;
  event.in_place =
      event.collective != Collective::bcast && event.elements > 0 && random_.percent(20);
  const auto& never = options_.never_in_place;
  if (std::find(never.begin(), never.end(), event.collective) != never.end())
    event.in_place = false;
  event.persistent = random_.percent(12) && options_.persistent_collectives;
  if (random_.percent(60))
    event.rounds = 1 + static_cast<int>(random_.below(event.persistent ? 3 : storm_ ? 10 : 6));
  if (alike_) event.rounds += event.persistent ? 2 : 5;  // to be lent, and then some
  if (has_uneven_blocks(event.collective)) {
    const bool equal = random_.percent(25);
    for (std::size_t part = 0; part < members.size(); ++part)
      event.weights.push_back(equal ? 1 : random_.below(4));
  }
  if (has_uneven_pairs(event.collective)) plan_pairs(event, members.size());
  const std::size_t shared_gap =
      random_.percent(15) ? 1 : 0;  // a reduction's type is the same everywhere
  const CommState& comm = comms_[static_cast<std::size_t>(event.comm)];
  for (const int rank : members) {
    Part part{rank, comm.thread[static_cast<std::size_t>(rank)], false, random_end(event),
              random_end(event)};
    if (reduction)
      part.send.gap_elements = part.recv.gap_elements =
          event.elements > 0 && options_.gaps_in_reductions ? shared_gap : 0;
    event.parts.push_back(part);
  }
}

// Some pairs have nothing, and a few may have far more than the others: more than a lane of an
// inbox takes, and than one of a region does at once. In place a pair has the same both ways.
void Generator::plan_pairs(Event& event, std::size_t members) {
  constexpr std::size_t kLongElements = 2500;
  const std::size_t far_more =
      std::max<std::size_t>(4, kLongElements / std::max<std::size_t>(1, event.elements));
  const unsigned long_percent = random_.pick(std::vector<unsigned>{0, 15, 15, 50});
  event.weights.resize(members * members);
  for (std::size_t sender = 0; sender < members; ++sender) {
    for (std::size_t receiver = 0; receiver < members; ++receiver) {
      std::size_t& weight = event.weights[sender * members + receiver];
      weight = random_.percent(long_percent) ? far_more : random_.below(4);
      if (event.in_place && receiver < sender) weight = event.weights[receiver * members + sender];
    }
  }
}

// A communicator is made by all members of another one.
void Generator::plan_comm() {
  Event event;
  event.kind = Event::Kind::collective;
  for (std::size_t i = 0; i < comms_.size(); ++i) {
    if (comms_[i].alive && random_.percent(40)) event.comm = static_cast<int>(i);
  }
  if (program_.threads > 1) event.comm = 0;
  const std::vector<int> members = program_.comms[static_cast<std::size_t>(event.comm)];
  const std::vector<int>& thread = comms_[static_cast<std::size_t>(event.comm)].thread;
  for (const int rank : members) {
    Part part;
    part.rank = rank;
    part.thread = thread[static_cast<std::size_t>(rank)];
    event.parts.push_back(part);
  }
  if (random_.percent(50) || !options_.entangled) {
    event.collective = Collective::dup;
    event.children = {static_cast<int>(comms_.size())};
    add_comm(members);
  } else {
    event.collective = Collective::split;
    std::vector<std::vector<int>> groups(2);
    for (const int rank : members) {
      event.colors.push_back(static_cast<int>(random_.below(2)));
      groups[static_cast<std::size_t>(event.colors.back())].push_back(rank);
    }
    for (int color = 0; color < 2; ++color) {
      event.children.push_back(static_cast<int>(comms_.size()));
      add_comm(groups[static_cast<std::size_t>(color)]);
      if (groups[static_cast<std::size_t>(color)].empty()) comms_.back().alive = false;
    }
  }
  ticks_.push_back({add_event(std::move(event)), 0, Tick::Kind::round});
}

void Generator::plan_event(int comm_choice) {
  Event event;
  event.comm = comm_choice;
  const bool collective = random_.percent(storm_ ? 90 : 60);
  collective ? plan_collective(event) : plan_message(event);
  const bool persistent_collective = event.persistent;
  if (persistent_collective) comms_[static_cast<std::size_t>(comm_choice)].has_persistent = true;
  const bool any_persistent = std::any_of(event.parts.begin(), event.parts.end(),
                                          [](const Part& part) { return part.persistent; });
  if (any_persistent) comms_[static_cast<std::size_t>(comm_choice)].has_persistent = true;
  const int number = add_event(std::move(event));
  if (persistent_collective) ticks_.push_back({number, 0, Tick::Kind::init});
}

void Generator::plan_exchange() {
  ExchangeOptions& exchange = program_.exchange;
  exchange.node_bytes = random_.pick(std::vector<std::size_t>{1, 64, 250});
  // The smallest is too small for more than two ranks, who then decline, the last enough for five.
  exchange.region_bytes =
      random_.pick(std::vector<std::size_t>{9216, 12288, 12288, 15500, 18432, 20480});
  exchange.one_shot_bytes = random_.pick(std::vector<std::size_t>{0, 1000, 1 << 20});
  exchange.refused_percent = random_.pick(std::vector<unsigned>{0, 0, 5, 20});
  exchange.kernels_percent = random_.pick(std::vector<unsigned>{100, 100, 100, 80});
  exchange.direct = random_.percent(50);
  exchange.spread = exchange.direct && random_.percent(30);
  exchange.pairs = random_.percent(35);
  exchange.descriptors = random_.percent(50);
  if (exchange.descriptors && random_.percent(30)) exchange.knobs.full_percent = 70;
  if (random_.percent(exchange.pairs ? 70 : 50)) plan_inboxes();
  plan_memory();
}

// Which memory the program uses again, and how much of it the library can remember and lend.
void Generator::plan_memory() {
  ExchangeOptions& exchange = program_.exchange;
  Knobs& knobs = exchange.knobs;
  pooled_percent_ = random_.pick(std::vector<unsigned>{0, 60, 95});
  if (exchange.direct) pooled_percent_ = random_.pick(std::vector<unsigned>{60, 95, 100});
  pools_ = 1 + static_cast<int>(random_.below(random_.percent(20) ? 8 : 3));
  program_.churn_percent = random_.pick(std::vector<unsigned>{0, 2, 10, 30});
  alike_ = exchange.direct && random_.percent(70);
  if (alike_) {
    exchange.shadowed_one_in = random_.pick(std::vector<unsigned>{0, 0, 40});
    exchange.region_bytes = random_.pick(std::vector<std::size_t>{15500, 20480});
    exchange.node_bytes = random_.pick(std::vector<std::size_t>{1, 64});
    if (random_.percent(50)) exchange.refused_percent = 0;
    if (random_.percent(exchange.pairs ? 30 : 70)) exchange.lane_bytes = 0;
  }
  if (random_.percent(20)) exchange.lending_refused_percent = 20;
  if (random_.percent(30)) {
    pools_ = 3 + static_cast<int>(random_.below(3));
    knobs.offers_max = 1 + static_cast<std::ptrdiff_t>(random_.below(2));
    knobs.idle_calls = 1 + random_.below(4);
    // More than are lent, so that there is one to forget.
    if (random_.percent(40)) knobs.known_max = 4 + random_.below(3);
  }
  knobs.late_trials = random_.percent(35);
}

void Generator::plan_inboxes() {
  ExchangeOptions& exchange = program_.exchange;
  if (random_.percent(30)) exchange.node_bytes = 0;
  exchange.lane_bytes = random_.pick(std::vector<std::size_t>{64, 512, 8192, 8192});
  exchange.inbox_calls = 1 + random_.below(2);
  exchange.packets =
      exchange.inbox_calls == 2;  // half of them, and no program is another one for it
  if (random_.percent(20)) exchange.exclusive_percent = 50;
}

// What the calls of this program are and how long.
void Generator::plan_calls() {
  using enum Collective;
  collectives_ = {allreduce, allreduce, allreduce, bcast,  bcast,   reduce,
                  reduce,    barrier,   allgather, gather, scatter, alltoall};
  collectives_.insert(collectives_.end(), {reduce_scatter_block, reduce_scatter, allgatherv, scan,
                                           exscan, gatherv, scatterv, alltoallv, alltoallv});
  std::erase_if(collectives_, [&](Collective kind) {
    return std::find(options_.without.begin(), options_.without.end(), kind) !=
           options_.without.end();
  });
  std::vector<std::size_t> menu{0, 1, 5, 7, 8, 9, 12, 16, 27, 40};
  storm_ = random_.percent(30);
  if (storm_) {
    sizes_ = {static_cast<std::size_t>(8 + random_.below(20)), 1};
    collectives_ = {random_.pick(collectives_), random_.pick(collectives_)};
  }
  if (random_.percent(60)) {
    plan_exchange();
    const std::vector<std::size_t> long_ones{33, 100, 250, 600};  // of one chunk to many
    menu.insert(menu.end(), long_ones.begin(), long_ones.end());
    sizes_.push_back(random_.pick(long_ones));
  }
  while (sizes_.size() < 3) sizes_.push_back(random_.pick(menu));
}

void Generator::plan() {
  program_.ranks =
      2 + static_cast<int>(random_.percent(40)
                               ? 0
                               : random_.below(static_cast<std::uint64_t>(options_.ranks_max - 1)));
  if (options_.ranks > 0) program_.ranks = options_.ranks;
  program_.threads =
      1 + static_cast<int>(random_.below(static_cast<std::uint64_t>(options_.threads_max)));
  program_.threads_allowed = random_.percent(75);
  program_.chunk_bytes = random_.pick(std::vector<std::size_t>{8, 20, 24, 32, 64});
  device_percent_ = random_.pick(std::vector<unsigned>{15, 50, 85});
  if (random_.percent(15)) program_.exchange.knobs.keys_max = 1 + random_.below(3);
  plan_calls();
  std::vector<int> everyone;
  for (int rank = 0; rank < program_.ranks; ++rank) everyone.push_back(rank);
  add_comm(everyone);

  const std::uint64_t comms_wanted = random_.below(3);
  if (program_.threads > 1) {
    for (std::uint64_t i = 0; i < comms_wanted; ++i) plan_comm();
  }
  setup_ticks_ = static_cast<int>(ticks_.size()) - 1;
  struct Open {
    int event;
    int next_round;
  };
  std::vector<Open> open;
  const auto emit = [&](std::size_t index) {
    Open& one = open[index];
    const Event& event = program_.events[static_cast<std::size_t>(one.event)];
    const bool probed =
        event.kind == Event::Kind::message && !event.parts[1].persistent && random_.percent(15) &&
        options_.entangled &&
        (options_.probes_of_own_messages || event.parts[0].rank != event.parts[1].rank);
    ticks_.push_back({one.event, one.next_round, probed ? Tick::Kind::probed : Tick::Kind::round});
    if (probed)
      ticks_.push_back({-1, 0, Tick::Kind::round});  // the second tick of a probed message
    if (++one.next_round == event.rounds)
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
  };
  const std::size_t length = 2 + random_.below(static_cast<std::uint64_t>(options_.length_max));
  std::uint64_t comms_made = program_.threads > 1 ? comms_wanted : 0;
  while (ticks_.size() < length) {
    if (comms_made < comms_wanted && random_.percent(40)) {
      ++comms_made;
      plan_comm();
    } else if (!open.empty() && random_.percent(60)) {
      emit(random_.below(open.size()));
    } else {
      std::vector<int> usable;
      for (std::size_t i = 0; i < comms_.size(); ++i) {
        if (comms_[i].alive) usable.push_back(static_cast<int>(i));
      }
      plan_event(random_.pick(usable));
      open.push_back({static_cast<int>(program_.events.size()) - 1, 0});
    }
  }
  while (!open.empty()) emit(random_.below(open.size()));
  // Another thread of the rank may still be about to use its communicator.
  for (std::size_t i = 1; i < comms_.size() && program_.threads == 1; ++i) {
    if (!comms_[i].alive || comms_[i].has_persistent || random_.percent(50)) continue;
    Event event;
    event.kind = Event::Kind::collective;
    event.collective = Collective::free;
    event.comm = static_cast<int>(i);
    for (const int rank : program_.comms[i]) {
      Part part;
      part.rank = rank;
      part.thread = comms_[i].thread[static_cast<std::size_t>(rank)];
      event.parts.push_back(part);
    }
    ticks_.push_back({add_event(std::move(event)), 0, Tick::Kind::round});
  }
}

}  // namespace accord::model::generator
