/* SPDX-License-Identifier: Apache-2.0
 * Copyright 2026 The Accord authors
 *
 * What the library and the kernels that include accord/partitioned.cuh agree on. Not for programs.
 * A round is what lies between an MPI_Start and the completion of the request; rounds are numbered
 * from 1 and wrap. A word that holds the number of the round says yes for that round and no for any
 * other, so nothing has to be reset between rounds.
 */
#ifndef ACCORD_PARTITIONED_LAYOUT_H
#define ACCORD_PARTITIONED_LAYOUT_H

#include <stdint.h>

/* The number of a round in host memory, where kernels look for it. Written to so many lines alike,
 * since loads of one line by several blocks wait for one another, a microsecond each (H200); a
 * partition has that of its number modulo the lines. */
#define ACCORD_PARTITION_LINES 64
struct accord_partition_line {
  uint32_t round;
  uint32_t unused[31];
};

/* In host memory that the device reaches. */
struct accord_partition_control {
  /* By the host: the round that was started last; and the same for MPIX_Pround, once all of the
   * first are written, so that who has seen it there sees it in all of them. */
  struct accord_partition_line started[ACCORD_PARTITION_LINES];
  struct accord_partition_line told[ACCORD_PARTITION_LINES];
  uint32_t error; /* by kernels: the first ACCORD_PARTITION_* they ran into in this round; by the
                     host: 0 */
  uint32_t unused[31];
};

#define ACCORD_PARTITION_OUT_OF_RANGE 1
#define ACCORD_PARTITION_TWICE 2 /* marked ready more often than it takes */
#define ACCORD_PARTITION_NOT_STARTED 3
/* ready on a request that only receives, or arrived on one that only sends */
#define ACCORD_PARTITION_OTHER_SIDE 4

/* What a request does; a collective may do both. */
#define ACCORD_PARTITION_SENDS 1
#define ACCORD_PARTITION_RECEIVES 2
#define ACCORD_PARTITION_TELLS 4 /* one that the ranks of a node may do by kernels alone */

/* Of a node, where their kernels do a collective. */
#define ACCORD_PARTITION_RANKS_MAX 32

/* On the device; only the host writes it, but for the counters that it points to. */
struct accord_prequest {
  uint32_t sides; /* ACCORD_PARTITION_SENDS, _RECEIVES and _TELLS */
  int32_t partitions;
  uint64_t partition_bytes;
  struct accord_partition_control* control;

  /* Of those that send. */
  int32_t transfer_partitions; /* of all transfers but the last */
  uint32_t marks;              /* of kernels that make a partition ready */
  uint64_t* partition_marks;   /* one a partition: round << 32 | marks so far */
  uint64_t* transfer_marks;    /* one a transfer: round << 32 | partitions that are ready */
  uint32_t* ready;             /* one a transfer, in host memory: the host shall move it */
  const unsigned char* buffer;
  /* Transfers up to this size are moved by kernels, by groups with a thread for each so many bytes.
   */
  uint64_t kernel_bytes;
  uint64_t thread_bytes;

  /* What is known once the two sides have met: the host may write it while kernels run, and then
   * says so. */
  struct accord_partition_link {
    uint64_t transfer_bytes; /* of all transfers but the last */
    uint64_t total_bytes;    /* that are sent */
    uint32_t* arrived;       /* one a transfer, in host memory: it lies in the receiver's buffer */
    /* In host memory: the round that the receiver has started, ACCORD_PARTITION_LINES of them. */
    const struct accord_partition_line* peer_ready;
    unsigned char* peer; /* senders: the receiver's buffer, where kernels reach it; else null */
  } link;
  /* The same of a collective that kernels of the library do among the ranks of a node: who marks a
   * partition ready tells all ranks, and nobody moves anything. */
  struct accord_partition_node {
    /* By rank, in the memory of its device: where it is told of partition 0; those that follow are
     * `ranks` words apart. */
    uint32_t* ready[ACCORD_PARTITION_RANKS_MAX];
    uint32_t ranks; /* 0: not so, or not yet; written after what is above */
  } node;
  uint32_t connected; /* 1: the link is valid */
};

#endif
