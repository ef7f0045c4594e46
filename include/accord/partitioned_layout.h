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

/* The same where kernels look at each mark: the round and, in the upper half, the last one in which
 * the host itself has marked a partition of this line, since then the mark may be the second one.
 */
struct accord_partition_start {
  uint64_t rounds;
  uint64_t unused[15];
};

/* In host memory that the device reaches. */
struct accord_partition_control {
  /* By the host: the round that was started last; and the same for MPIX_Pround, once all of the
   * first are written, so that who has seen it there sees it in all of them. */
  struct accord_partition_start started[ACCORD_PARTITION_LINES];
  struct accord_partition_line told[ACCORD_PARTITION_LINES];
  uint32_t error; /* by kernels: the first ACCORD_PARTITION_* they ran into since a round ended; by
                     the host, which then tells of it: 0 */
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

/* Marks that a partition may take: a counter of them has a bit for who looks for the round. */
#define ACCORD_PARTITION_MARKS_MAX 0x7fffffff

/* Of a node, where their kernels do a collective. */
#define ACCORD_PARTITION_RANKS_MAX 32

/* What ACCORD_PARTITION_STATE_* says of a request's fields. */
#define ACCORD_PARTITION_STATE_ELSEWHERE 0 /* not here yet: look at the image */
#define ACCORD_PARTITION_STATE_ALONE 1     /* all but the link */
#define ACCORD_PARTITION_STATE_CONNECTED 2
#define ACCORD_PARTITION_STATE_ON_NODE 3 /* the link and the node */

/* On the device, and its image in host memory; only the host writes it, but for the counters that
 * it points to. The host writes the image at once and has it copied to the device later, while
 * kernels may run, so that it waits for no driver: `state`, which goes last, says what is there. */
struct accord_prequest {
  const struct accord_prequest* image; /* for good, whatever request this place is used for */
  uint32_t sides;                      /* ACCORD_PARTITION_SENDS and _RECEIVES */
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

  /* What is known once the two sides have met. */
  struct accord_partition_link {
    uint64_t transfer_bytes; /* of all transfers but the last */
    uint64_t total_bytes;    /* that are sent */
    uint64_t transfers;      /* that they are sent in; of no bytes, too */
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
    uint32_t ranks; /* 0: not so, or not yet */
  } node;
  uint32_t state;
};

#endif
