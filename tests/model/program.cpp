// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "program.h"

#include <fmt/format.h>

namespace accord::model {
namespace {

const char* name_of(Place place) {
  static const char* const names[] = {"host", "deviceA", "deviceB", "managed"};
  return names[static_cast<std::size_t>(place)];
}

}  // namespace

const char* name_of(Action::Verb verb) {
  static const char* const names[] = {
      "init",     "start",   "block",        "wait",   "test",  "get_status",  "waitall", "waitany",
      "waitsome", "testall", "request_free", "cancel", "probe", "iprobe loop", "open",    "await"};
  return names[static_cast<std::size_t>(verb)];
}

namespace {

std::string end_text(const End& end) {
  std::string text = name_of(end.place);
  if (end.pool >= 0) text += fmt::format("#{}", end.pool);
  if (end.gap_elements > 0) text += fmt::format("+gap{}", end.gap_elements);
  return text;
}

std::string ref_name(const Program& program, const Ref& ref) {
  const Event& event = program.events[static_cast<std::size_t>(ref.event)];
  std::string name = fmt::format("e{}", ref.event);
  if (event.rounds > 1) name += fmt::format(".{}", ref.round);
  if (event.kind == Event::Kind::gathering) name += fmt::format("/{}", ref.part);
  return name;
}

std::string call_text(const Program& program, const Ref& ref) {
  const Event& event = program.events[static_cast<std::size_t>(ref.event)];
  const Part& part = event.parts[static_cast<std::size_t>(ref.part)];
  const std::string comm = event.comm == 0 ? "world" : fmt::format("c{}", event.comm);
  if (event.kind == Event::Kind::collective) {
    std::string text = fmt::format("{}({}", name_of(event.collective), comm);
    if (has_root(event.collective)) text += fmt::format(", root {}", event.root);
    if (event.elements > 0) text += fmt::format(", {} x int64", event.elements);
    if (event.op != Op::none) text += fmt::format(", {}", name_of(event.op));
    for (const std::size_t weight : event.weights) text += fmt::format(" * {}", weight);
    if (event.in_place) text += ", in place";
    for (const int child : event.children) text += fmt::format(" -> c{}", child);
    if (event.elements > 0) {
      text += event.collective == Collective::bcast
                  ? ", " + end_text(part.recv)
                  : ", " + end_text(part.send) + " -> " + end_text(part.recv);
    }
    return text + ")";
  }
  if (event.kind == Event::Kind::cancelled)
    return fmt::format("recv({}, tag {}, never sent)", comm, event.tag);
  if (event.receives(static_cast<std::size_t>(ref.part))) {
    const std::string from =
        event.kind == Event::Kind::gathering ? "any" : fmt::format("rank {}", event.parts[0].rank);
    return fmt::format("recv({}, from {}, tag {}, {} x int64, {})", comm, from, event.tag,
                       event.elements + event.spare_elements, end_text(part.recv));
  }
  const Part& receiver = event.kind == Event::Kind::gathering ? event.parts.back() : event.parts[1];
  return fmt::format("{}({}, to rank {}, tag {}, {} x int64, {})",
                     event.synchronous ? "ssend" : "send", comm, receiver.rank, event.tag,
                     event.elements, end_text(part.send));
}

}  // namespace

std::string to_text(const Program& program, const Action& action) {
  using Verb = Action::Verb;
  if (action.refs.empty()) return name_of(action.verb);
  const Ref& first = action.refs.front();
  const Event& event = program.events[static_cast<std::size_t>(first.event)];
  const Part& part = event.parts[static_cast<std::size_t>(first.part)];
  if (action.verb == Verb::block)
    return fmt::format("{}: {}", ref_name(program, first), call_text(program, first));
  if (action.verb == Verb::init)
    return fmt::format("{} = init {}", ref_name(program, first), call_text(program, first));
  if (action.verb == Verb::start && !part.persistent && !event.persistent) {
    return fmt::format("{} = i{}", ref_name(program, first), call_text(program, first));
  }
  std::string names;
  for (const Ref& ref : action.refs) names += (names.empty() ? "" : ", ") + ref_name(program, ref);
  return fmt::format("{}({})", name_of(action.verb), names);
}

std::string to_text(const Program& program) {
  std::string text = fmt::format("{} ranks, threads {}, args from {} bytes in chunks of {}\n",
                                 program.ranks, program.threads_allowed ? "allowed" : "not allowed",
                                 program.pipeline_bytes, program.chunk_bytes);
  if (const ExchangeOptions& exchange = program.exchange;
      exchange.node_bytes > 0 || exchange.lane_bytes > 0) {
    text += fmt::format(
        "exchange from {} bytes through regions of {}, one shot to {}{}{}{}; to {} bytes through "
        "inboxes{} "
        "from call {} on; {} % refused, {} % to lend, {} % of ranks with kernels, {} % with "
        "exclusive devices; "
        "memory of pools made anew in {} %{}{}; {} kinds of calls, {} of {} known allocations "
        "lent, "
        "for {} calls, {} % full sockets\n",
        exchange.node_bytes, exchange.region_bytes, exchange.one_shot_bytes,
        exchange.direct ? ", directly where possible" : "",
        exchange.spread ? ", spread by engines" : "", exchange.pairs ? ", pair by pair" : "",
        exchange.lane_bytes, exchange.packets ? " in packets" : "", exchange.inbox_calls,
        exchange.refused_percent, exchange.lending_refused_percent, exchange.kernels_percent,
        exchange.exclusive_percent, program.churn_percent,
        exchange.descriptors ? ", with descriptors" : "",
        exchange.knobs.late_trials ? ", late trials" : "", exchange.knobs.keys_max,
        exchange.knobs.offers_max, exchange.knobs.known_max, exchange.knobs.idle_calls,
        exchange.knobs.full_percent);
  }
  for (std::size_t comm = 1; comm < program.comms.size(); ++comm) {
    std::string members;
    for (const int rank : program.comms[comm]) members += fmt::format(" {}", rank);
    text += fmt::format("  c{} = ranks{}\n", comm, members);
  }
  for (int rank = 0; rank < program.ranks; ++rank) {
    for (int thread = 0; thread < program.threads; ++thread) {
      text += program.threads == 1 ? fmt::format("  rank {}:\n", rank)
                                   : fmt::format("  rank {} thread {}:\n", rank, thread);
      for (const Action& action : program.list(rank, thread))
        text += "    " + to_text(program, action) + "\n";
    }
  }
  return text;
}

}  // namespace accord::model
