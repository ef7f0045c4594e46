#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Writes a copy of a source file of the library in which the mistakes of mutation.h can be switched on.

Each mistake takes one expression for another while it is the active one; with none, the copy does
what the original does. An expression that is not there exactly once is an error: the table below
must follow the source.
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
            "{peer, 0, block(peer) + at, ",
            "length(peer, chunk)",
            "std::min(bytes, length(peer, chunk))",
        ),
        "reduce_overwritten": (
            "return ",
            "blocks_.empty() && (call_.kind == Kind::alltoall || scatters_result())",
            "call_.kind == Kind::alltoall || scatters_result()",
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
            "peer == ::accord::model::dead_rank",
        ),
        "keep_old_words": ("return ", "runtime_->copy(device_, {&clear, 1})", "Status()"),
    },
    "collective.cpp": {
        "share_sequence": ("own = ", "std::make_shared<CommQueue>()", "queue"),
    },
    "joining.cpp": {"decline_alone": ("records || !", "all_.any_host()", "mine_.any_host()")},
}


def mutated(source, text):
    for mistake, (before, original, mistaken) in MUTATIONS[source].items():
        if text.count(before + original) != 1:
            sys.exit(
                f"{source} does not have `{before}{original}` exactly once, which {mistake} changes"
            )
        is_active = f"::accord::model::active(::accord::model::Mutation::{mistake})"
        choice = f"({is_active} ? ({mistaken}) : ({original}))"
        text = text.replace(before + original, before + choice)
    return '#include "mutation.h"\n' + text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.output.write_text(mutated(arguments.source.name, arguments.source.read_text()))


if __name__ == "__main__":
    main()
