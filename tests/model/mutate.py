#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Writes a copy of a source file of the library for the model tests.

Mistakes (mutation.h): each takes one expression for another while it is the active one; with none,
the copy does what the original does.
Marks (reach.h): expressions that count what programs reach, so that the library itself need not.
Knobs (knobs.h): bounds that a program chooses, since it is too short to reach those of the library.
An expression that is not there exactly once is an error: the tables below must follow the source.
"""

import argparse
import pathlib
import sys

# Source, mistake: what stands before the expression, the expression, what to take for it.
MUTATIONS = {
    "node_exchange.cpp": {
        "reuse_undrained": ("|| ", "!slot_is_free(base_ + next_)", "false"),
        "publish_unfilled": (
            "if (",
            "ready && publish(own.filled, sequence(flight))",
            "(publish(own.filled, sequence(flight)), ready && own.filled > sequence(flight))",
        ),
        "reduce_unfilled": (
            "if (",
            "group_->mailbox(peer).filled.load(std::memory_order_acquire) <= number",
            "false",
        ),
        "publish_unreduced": (
            "if (",
            "ready && publish(own.reduced, sequence(flight))",
            "(publish(own.reduced, sequence(flight)), ready && own.reduced > sequence(flight))",
        ),
        "pull_unready": ("if (", "counter.load(std::memory_order_acquire) <= number", "false"),
        "pull_unreduced": (
            "counter = ",
            "plan_.reduces() ? peer.reduced : peer.filled",
            "peer.filled",
        ),
        "drain_unpulled": (
            "if (",
            "ready && publish(own.drained, sequence(flight))",
            "(publish(own.drained, sequence(flight)), ready && own.drained > sequence(flight))",
        ),
    },
    "inbox_exchange.cpp": {
        "send_undrained": ("if (", "!lanes_are_free(ticket_.exchange.send_to)", "false"),
        "drain_untaken": (
            "bool InboxExchange::announce() {\n  ",
            "group_->own_mailbox().filled.store(number_ + 1, std::memory_order_release)",
            "(group_->own_mailbox().filled = number_ + 1,"
            " group_->own_mailbox().drained = number_ + 1, void())",
        ),
        "old_epoch": (
            "exchange.epoch = ",
            "static_cast<std::uint32_t>(number_ % 0xffffffff) + 1",
            "1",
        ),
        "late_unbegun": ("if (", "ticket_.state == device::InboxTicket::State::late", "false"),
        "send_again": (
            "ACCORD_TRY(",
            "server.begin(ticket_)",
            "(ticket_.sent = false, server.begin(ticket_))",
        ),
        "await_own_block": ("    ", "exchange.receive_from &= ~own", "exchange.receive_from |= 0"),
        "overwrite_own_block": ("if (", "!keeps_own_block()", "true"),
        "await_those_behind": (
            "exchange.receive_from = ",
            "call.kind == Kind::scan ? before | own : before",
            "everyone()",
        ),
    },
    "plan.cpp": {
        "scan_of_all": ("if (call_.kind == Kind::scan) return ", "rank + 1", "call_.size"),
        "exscan_with_own": (
            "return ",
            "call_.kind == Kind::exscan ? rank : call_.size",
            "call_.kind == Kind::exscan ? rank + 1 : call_.size",
        ),
        "pull_own_length": (
            "geometry_.place_out(peer) + at,\n                       ",
            "length(has_lanes ? rank : peer, chunk)",
            "std::min(length(rank, chunk), length(peer, chunk))",
        ),
        "reduce_overwritten": (
            "return ",
            "call_.blocks_bytes.empty() && pattern.blocks_in && !pattern.from_root",
            "pattern.blocks_in && !pattern.from_root",
        ),
    },
    "direct_exchange.cpp": {
        "settle_unread": ("if (", "peers_are_done()", "true"),
        "reach_unarrived": (
            "const bool there = ",
            "board(rank).arrived.load(std::memory_order_acquire) > call_",
            "record(rank).direct != 0",
        ),
    },
    "spread_reduction.cpp": {
        "reduce_unfetched": ("return piece < ", "steps_[step - 1].ended", "plan_.pieces()"),
        "refetch_unreduced": (
            "return piece < ",
            "steps_[kReduce].ended + node::SpreadPlan::kPiecesInRegion",
            "plan_.pieces()",
        ),
        "end_unstored": (
            "done = ",
            "steps_[kStore].ended == plan_.pieces()",
            "steps_[kFetch].ended == plan_.pieces()",
        ),
    },
    "pairwise_exchange.cpp": {
        "refill_unread": ("return ", "region_is_free()", "true"),
        "leave_lent": ("pair.is_lent ? ", "has_fetched(pair)", "true"),
    },
    "group.cpp": {
        "free_in_use": ("if (", "!group->abandoned()", "false"),
        "rank_dies": (
            "if (",
            "look && peer != rank_ && life_lines_[static_cast<std::size_t>(peer)]->is_cut()",
            "peer != rank_ && ::accord::model::is_dead(peer)",
        ),
        "keep_old_words": ("return ", "runtime_->copy(device_, {&clear, 1})", "Status()"),
    },
    "collective.cpp": {
        "share_sequence": ("    ", "copy.group.reset()", "void()"),
    },
    "joining.cpp": {
        "decline_alone": ("const bool all_could = !", "all_.any_host()", "mine_.any_host()"),
    },
    "window.cpp": {
        "unlock_unflushed": ("Status first = ", "flush(target)", "Status()"),
        "flush_unanswered": ("return ", "service_->is_quiet(target)", "true"),
    },
    "words.cpp": {
        "update_unlocked": (
            "if (",
            "words.update_holder.compare_exchange_strong(\n"
            "            holder, static_cast<std::uint32_t>(own_rank) + 1, std::memory_order_acq_rel)",
            "true",
        ),
        "lock_despite_sharers": ("    now = ", "0", "now & ~kHolderMask"),
        "share_despite_holder": ("while (", "(now & kHolderMask) == 0", "true"),
    },
}

REACH = "::accord::model::reached(::accord::model::Reach::"
REACHED_IF = "::accord::model::reached_if(::accord::model::Reach::"
KNOBS = "::accord::model::knobs"

# Source: what stands before the expression, the expression, what stands there instead; $ is the
# expression itself.
MARKS = {
    "agreement.cpp": [
        ("if (keys_.size() < ", "kKeysMax", f"{KNOBS}.keys_max"),
        ("lot / kCallsPerPlace % ", "kKeysMax", f"{KNOBS}.keys_max"),
        ("if (", "lot % kCallsPerPlace != 0", f"{REACHED_IF}key_without_room, $)"),
        ("", "entries_.erase(loser)", f"({REACH}key_displaced), $)"),
    ],
    "collective.cpp": [
        ("core::CallWatch::Difference found;\n    Status status = ",
         "run_exchange(engine, *queue, *exchange, call.entry, found)",
         f"({REACH}in_one_step), $)"),
        ("set_last_path(", "exchange->path()", f"({REACH}run_again), $)"),
    ],
    "collective_operation.cpp": [
        ("if (", "&algorithm == &algorithms::staged", f"{REACHED_IF}staged, $)"),
        ("if (", "&algorithm == &algorithms::chunks",
         f"{REACHED_IF}pipelined, $)"),
        ("if (", "form_ == Form::persistent && turn_->result->algorithm != nullptr",
         f"{REACHED_IF}persistent_rounds, $)"),
        ("if (", "foreign", f"{REACHED_IF}foreign_end, $)"),
    ],
    "direct_exchange.cpp": [
        ("if (", "plan_.form() == node::DirectForm::spread",
         "(::accord::model::reached_direct(plan_.form(), args_.exchange->kind), $)"),
        ("(", "next == State::declined", f"{REACHED_IF}direct_declined, $)"),
        ("return ", "args_.in_place;", f"{REACHED_IF}direct_in_place, args_.in_place);"),
    ],
    "inbox_exchange.cpp": [
        ("state_ = ", "State::unpacking", f"({REACH}inbox, args_.exchange->kind), $)"),
    ],
    "inbox_pairs.cpp": [
        ("    ", "long_.emplace(",
         f"{REACHED_IF}long_and_short_pairs,"
         " (ticket_.exchange.send_to | ticket_.exchange.receive_from) != 0), $"),
    ],
    "joining.cpp": [
        ("step_on(", "accepted.ok()", f"{REACHED_IF}ranks_accepted, $)"),
        ("step_ == Step::opened && ", "!all_could", f"{REACHED_IF}opening_refused, $)"),
        ("++joined_.early_attempts < ", "kEarlyAttemptsMax", f"({REACH}joined_too_early), $)"),
        ("if (!grows() || ", "group_->has_more_memory_than(*joined_.group)",
         f"{REACHED_IF}grown, $)"),
    ],
    "node_exchange.cpp": [
        ("base_ = ", "group_->take(plan_.chunks())",
         f"({REACH}regions, args_.exchange->kind), $)"),
    ],
    "pairwise_exchange.cpp": [
        ("if (", "found.size_bytes >= from_bytes_",
         f"!{REACHED_IF}pair_of_no_bytes, found.size_bytes == 0) && $"),
        ("slot_bytes() * node::Group::kSlots, ", "through_region.size()",
         f"({REACHED_IF}long_beside_short, ::accord::model::differ_much(through_region)), $)"),
        ("      (", "pair.is_lent", f"{REACHED_IF}pair_through_region, !$, args_.exchange->kind)"
         f" ? region_pairs : {REACHED_IF}pair_lent, $, args_.exchange->kind)"),
    ],
    "descriptor_port.cpp": [
        ("sent = ", "send_parcel(ports().socket.number(), name, parcel, descriptors) >= 0",
         "::accord::model::has_room() && $"),
    ],
    "words.cpp": [
        ("    ", "::sched_yield()", "::accord::model::take_turns()"),
    ],
    "offers.cpp": [
        ("if (", "own_.size() >= kKnownMax", f"own_.size() >= {KNOBS}.known_max"),
        ("    ", "own_.erase(std::min_element", f"{REACH}known_forgotten), $"),
        ("const auto slot = std::find_if(slots_.begin(), ", "slots_.end()",
         f"slots_.begin() + {KNOBS}.offers_max"),
        ("if (slot != ", "slots_.end()", f"slots_.begin() + {KNOBS}.offers_max"),
        ("idle->last_call + ", "kIdleCalls", f"{KNOBS}.idle_calls"),
        ("<= calls_) ", "withdraw(*idle)", f"({REACH}idle_gives_way), $)"),
        ("", "++slot.generation", f"({REACH}offered), {REACHED_IF}offer_again, $ > 1))"),
        ("", "keep_account(slot)", f"({REACH}offer_of_freed), $)"),
        ("", "keep_account(slots_[static_cast<std::size_t>(slot)])",
         f"({REACH}freed_found_later), $)"),
        ("has_closed = has_closed || ", "imports[i].memory.is_open()",
         f"{REACHED_IF}stale_import_closed, $)"),
        ("if (", "imports[i].generation == generation",
         f"!{REACHED_IF}stale_generation, imports[i].generation != 0 && !($)) && $"),
        ("  return ", "Trial::unended()", f"({REACH}late_trial), $)"),
        ("if (", "import.generation != tried.generation || !trial_.outcome().ok()",
         f"!{REACHED_IF}late_trial_counts, !($))"),
        ("has_refused_ = ", "true", f"({REACH}import_refused), $)"),
        ("has_refused_ = ", "false;", f"({REACH}import_tried_again), false);"),
        ("own.refused = own.refused || ", "!lent.ok()", f"{REACHED_IF}export_refused, $)"),
        ("if (", "!sent) return {};\n  shown", f"{REACHED_IF}offer_waits_for_room, !sent)) return {{}};\n  shown"),
    ],
}


def replaced(source, text, before, original, instead):
    if text.count(before + original) != 1:
        sys.exit(f"{source} does not have `{before}{original}` exactly once")
    return text.replace(before + original, before + instead)


def mutated(source, text):
    for mistake, (before, original, mistaken) in MUTATIONS.get(source, {}).items():
        is_active = f"::accord::model::active(::accord::model::Mutation::{mistake})"
        choice = f"({is_active} ? ({mistaken}) : ({original}))"
        text = replaced(source, text, before, original, choice)
    for before, original, mark in MARKS.get(source, []):
        text = replaced(source, text, before, original, mark.replace("$", original))
    return '#include "knobs.h"\n#include "mutation.h"\n#include "reach.h"\n' + text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.output.write_text(mutated(arguments.source.name, arguments.source.read_text()))


if __name__ == "__main__":
    main()
