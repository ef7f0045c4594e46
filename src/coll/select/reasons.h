// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Why a call goes the way it does, for people: all words that a trace uses but the texts of a
// Status.
#pragma once

#include "coll/algorithm.h"

namespace accord::coll::reason {

// Of the call itself: known before anybody is asked.
inline constexpr const char* kNothingStaged = "no buffer on a device";
inline constexpr const char* kRefused = "left to the host MPI to refuse";
inline constexpr const char* kPointToPoint = "point-to-point";
inline constexpr const char* kSenderDecides = "point-to-point, as its sender decides";
inline constexpr const char* kStartDecides = "point-to-point, as each start decides";
inline constexpr const char* kByHeader = "point-to-point within the node";
inline constexpr const char* kIntercommunicator = "intercommunicator";
inline constexpr const char* kNotOneWorld = "ranks not of one MPI_COMM_WORLD";
inline constexpr const char* kOneRank = "one rank";
inline constexpr const char* kHostOnly = "collective not within a node";
inline constexpr const char* kNodeOff = "ACCORD_NODE_BYTES is 0";
inline constexpr const char* kNoDevices = "no rank has an accelerator";
inline constexpr const char* kShort = "below ACCORD_NODE_BYTES";
inline constexpr const char* kOperation = "operation or type not on device";
inline constexpr const char* kForced = "ACCORD_ALGORITHM";
inline constexpr const char* kByInfo = "info of the communicator";
inline constexpr const char* kByTable = "ACCORD_TABLE";
inline constexpr const char* kArguments = "aliased or unusual arguments";
inline constexpr const char* kNoProgress = "not blocking, without a progress thread";

// Of a call that somebody wants to go a certain way; "": nobody does.
inline const char* of(Origin origin) {
  switch (origin) {
    case Origin::setting:
      return kForced;
    case Origin::info:
      return kByInfo;
    case Origin::table:
      return kByTable;
    case Origin::rule:
      break;
  }
  return "";
}

// Of a vote.
inline constexpr const char* kVotes = "this call votes";
inline constexpr const char* kVoted = "voted";
inline constexpr const char* kVoteFailed = "the vote failed";
inline constexpr const char* kAllHost = "no buffer of any rank on a device";
inline constexpr const char* kNoLongPair =
    "no rank has ACCORD_NODE_BYTES on a device for another rank";
inline constexpr const char* kNoFarPair =
    "no rank has a quarter of ACCORD_TWO_LEVEL_BYTES on a device for a rank";
inline constexpr const char* kNoKernels = "a rank has no kernels";
inline constexpr const char* kInTurns = "below ACCORD_TURN_BYTES, and ranks take turns on a device";
inline constexpr const char* kDeclined = "group declined";
inline constexpr const char* kSeldom = "not often enough for inboxes (ACCORD_INBOX_CALLS)";
inline constexpr const char* kNotByLibrary = "the collective library cannot do it";
inline constexpr const char* kTooEarly = "a rank uses no device yet";
inline constexpr const char* kSeveralNodes = "node: the ranks do not share memory";
inline constexpr const char* kPeerDeclined = "another rank cannot take part";

}  // namespace accord::coll::reason
