// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Deliberate mistakes, to show that the model test would find them. Those of the shim are made by
// the model's own; those of the core and the node room are made in copies of their sources, which
// mutate.py writes for the mutation test alone.
#pragma once

#include <atomic>

namespace accord::model {

enum class Mutation {
  none,
  // In the shim:
  block_without_progress,  // native blocking calls while operations are active and nobody
                           // progresses them
  skip_queue,          // a later collective does not wait for the earlier ones of its communicator
  latest_mode,         // a call uses the last mode this rank has heard of, not that of its own vote
  no_finish,           // a completed request's bytes are not brought to the user
  local_form,          // blocking or non-blocking form of a collective by whether this rank is idle
  no_progress_thread,  // nobody progresses operations while a collective blocks in the host MPI
  no_poke,             // the host MPI stands still while a rank waits for its peers' mailboxes
  // In the core and the node room:
  reuse_undrained,    // a slot is filled again while peers may still read it
  publish_unfilled,   // a chunk counts as filled before its copy has ended
  reduce_unfilled,    // a share is reduced before all ranks have filled their slots
  publish_unreduced,  // a share counts as reduced before the kernel has ended
  pull_unready,       // a chunk is fetched whether or not its peer has it
  pull_unreduced,     // a result is fetched once its peer has filled its slot
  drain_unpulled,     // a chunk counts as drained before its copies have ended
  free_in_use,        // a region is freed while peers may still read it
  send_undrained,     // a lane is written while its owner may still read it
  drain_untaken,      // a lane counts as free before its owner has taken the data
  old_epoch,          // all calls have one epoch, so that data of an earlier one is taken
  late_unbegun,       // an exchange that is late goes on without being begun again
  send_again,         // one that is begun again sends again, perhaps from where results lie already
  await_own_block,    // a root waits for a block that it keeps in its place, hence never sends
  overwrite_own_block,  // a root that gathers in place overwrites its own block
  await_those_behind,   // a prefix waits for ranks that send nothing to those before them
  scan_of_all,          // a prefix is reduced from the slots of all ranks
  exscan_with_own,      // an exclusive prefix has the rank's own part
  pull_own_length,      // blocks that are longer than the own one are not fetched to their end
  reduce_overwritten,   // a block is reduced from where an earlier part of the result lies already
  keep_old_words,       // an inbox holds words of whatever the memory was used for before
  settle_unread,        // a rank ends a direct call while peers reach into its buffers
  reach_unarrived,  // a rank takes what a peer said of an earlier call for what it says of this one
  end_unstored,     // a call ends before all that it stores with the others is there
  reduce_unfetched,   // a piece is reduced before all of it has come
  refetch_unreduced,  // a piece is fetched over one that the kernel has yet to reduce
  refill_unread,      // a rank sends again through a region that a peer may still read
  leave_lent,         // a rank ends its call while peers reach into its buffer
  share_sequence,     // a persistent call goes by the groups of its communicator
  rank_dies,          // no mistake: the process of `dead_rank` is gone
  decline_alone,      // a rank goes by its own vote on whether the ranks can share their regions
  // In the rma room:
  update_unlocked,       // an accumulate reads, combines and writes whether or not another one does
  lock_despite_sharers,  // an exclusive lock of a window is granted while others share it
  share_despite_holder,  // a shared one while another rank holds it alone
  unlock_unflushed,      // a lock is given back before what was done under it is there
  flush_unanswered,      // a flush ends before its target has said that all is done
};

// Those of the running job.
extern std::atomic<Mutation> active_mutation;
extern std::atomic<int> dead_rank;        // of all communicators; -1: none
extern std::atomic<unsigned> dead_ranks;  // a bit each: those too
inline bool is_dead(int rank) noexcept {
  return dead_rank.load() == rank || (dead_ranks.load() >> rank & 1u) != 0;
}
inline bool active(Mutation mutation) noexcept { return active_mutation.load() == mutation; }

}  // namespace accord::model
