// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <tuple>

#include "flavour.h"

namespace accord::conformance {
namespace {

using Vendor = Flavour::Vendor;

struct Version {
  int major;
  int minor;
};

struct Exclusion {
  const char* feature;
  Vendor vendor;
  Version first;  // first and last version seen with the defect, both included
  Version last;
  const char* reason;
};

constexpr std::array kExclusions = {
    Exclusion{"nonblocking alltoallw",
              Vendor::open_mpi,
              {4, 0},
              {4, 1},
              "crashes on communicators with a topology, which it takes for a neighbourhood call"},
    Exclusion{
        "nonblocking alltoallv in place", Vendor::open_mpi, {4, 0}, {4, 1}, "never completes"},
    Exclusion{"nonblocking alltoallv in place",
              Vendor::open_mpi,
              {5, 0},
              {5, 0},
              "a rank gets the block of another where some sizes are 0"},
    Exclusion{"persistent alltoallv in place",
              Vendor::open_mpi,
              {5, 0},
              {5, 0},
              "as the non-blocking form"},
    Exclusion{"nonblocking reduce_scatter",
              Vendor::open_mpi,
              {4, 0},
              {4, 1},
              "count 0 puts later non-blocking tags off by one"},
    Exclusion{"persistent alltoallw", Vendor::open_mpi, {4, 0}, {4, 1}, "as the non-blocking form"},
    Exclusion{"persistent alltoallv in place",
              Vendor::open_mpi,
              {4, 0},
              {4, 1},
              "as the non-blocking form"},
    Exclusion{
        "persistent reduce_scatter", Vendor::open_mpi, {4, 0}, {4, 1}, "as the non-blocking form"},
    Exclusion{"blocking gatherv between groups",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "the root waits for ranks that have nothing to send"},
    Exclusion{"complex in derived types",
              Vendor::open_mpi,
              {5, 0},
              {5, 0},
              "gaps that are no multiple of the element are lost"},
    Exclusion{"long double complex in parts",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "an element of a derived type that lies across two fragments arrives damaged"},
    Exclusion{"bcast count of a MPI_PROC_NULL rank",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "0 where the others' is not, or the other way round, puts later non-blocking tags "
              "off by one"},
    Exclusion{
        "communicator freed while in use",
        Vendor::open_mpi,
        {4, 0},
        {5, 0},
        "a non-blocking collective crashes when its communicator is freed before it is complete"},
    Exclusion{
        "nonblocking alltoallw in place", Vendor::open_mpi, {4, 0}, {5, 0}, "never completes"},
    Exclusion{"persistent alltoallw in place", Vendor::open_mpi, {4, 0}, {5, 0}, "never completes"},
    Exclusion{"blocking scatterv between groups",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "ranks that get nothing leave the call, and the others wait for them"},
    Exclusion{"gather of columns",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "what a rank forwards for others it lays out in its own type, where they overlap"},
    Exclusion{"allgatherv of unlike types",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "ranks choose different algorithms where their send types differ in size, and hang"},
    Exclusion{"truncation of a large message",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "btl/self writes the whole message behind a receive that is too small"},
    Exclusion{"alltoallw displacement on one process",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "coll/self multiplies the byte displacement by the extent"},
    Exclusion{"idup beside other collectives",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "its later steps take tags of the communicator when they come, so that ranks which "
              "start other collectives meanwhile differ"},
    Exclusion{"types freed while in use",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "non-blocking and persistent collectives keep no reference to a derived datatype"},
    Exclusion{
        "nonblocking bcast between groups",
        Vendor::mpich,
        {4, 0},
        {5, 0},
        "ranks of one group take different tags (at the latest where only some counts are 0), "
        "and the next call hangs"},
    Exclusion{"persistent bcast between groups",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "as the non-blocking form"},
    Exclusion{
        "blocking gather between groups",
        Vendor::mpich,
        {4, 0},
        {5, 0},
        "the groups choose different algorithms where their types differ, and hang or truncate"},
    Exclusion{
        "nonblocking gather between groups",
        Vendor::mpich,
        {4, 0},
        {5, 0},
        "the groups choose different algorithms where their types differ, and hang or truncate"},
    Exclusion{"blocking scatter between groups",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "as gather: the ranks of a group of two choose different algorithms, and hang"},
    Exclusion{"nonblocking scatter between groups",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "as gather: the ranks of a group of two choose different algorithms, and hang"},
    Exclusion{"persistent scatter between groups",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "as gather: the ranks of a group of two choose different algorithms, and hang"},
    Exclusion{
        "persistent gather between groups",
        Vendor::mpich,
        {4, 0},
        {5, 0},
        "the groups choose different algorithms where their types differ, and hang or truncate"},
    Exclusion{"blocking allgather between groups",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "as gather: the groups choose different algorithms, and hang"},
    Exclusion{"large allgatherv",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "from 64 KiB on, ranks with derived types take other algorithms than the others, and "
              "hang or truncate"},
    Exclusion{"nonblocking reduce_scatter in place",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "as the blocking form"},
    Exclusion{"persistent reduce_scatter in place",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "as the blocking form"},
    Exclusion{"neighbours in a directed graph",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "truncates messages or never completes"},
    Exclusion{"one rank on both sides, not blocking",
              Vendor::open_mpi,
              {4, 0},
              {5, 0},
              "takes the block of the other side, unlike the blocking form"},
    Exclusion{"persistent buffered sends",
              Vendor::open_mpi,
              {4, 0},
              {4, 1},
              "send other bytes than the buffer's when started again"},
    Exclusion{"truncation in Waitall", Vendor::open_mpi, {4, 0}, {4, 1}, "never completes"},
    Exclusion{"truncation in Recv_init",
              Vendor::open_mpi,
              {4, 0},
              {4, 1},
              "memory of the receive changes later, when it serves something else"},
    Exclusion{"probe of a message to oneself",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "now and then the status of MPI_Iprobe tells 0 bytes"},
    Exclusion{"messages in delete functions",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "they run where the last call with the datatype or communicator ends, under a lock"},
    Exclusion{"types freed while in use",
              Vendor::mpich,
              {4, 0},
              {4, 0},
              "assertions on reference counts, and damaged data"},
    Exclusion{"Scan, MPI_LAND of MPI_FLOAT", Vendor::mpich, {4, 0}, {4, 0}, "aborts"},
    Exclusion{
        "bfloat16 reductions but sums", Vendor::mpich, {4, 0}, {5, 0}, "abort inside the library"},
    Exclusion{"Allreduce, null type",
              Vendor::mpich,
              {5, 0},
              {5, 0},
              "aborts instead of returning an error"},
    Exclusion{"user operations on types with a trailing gap",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "temporary buffers are allocated by true extent and used by extent"},
    Exclusion{"Get_elements of mixed types", Vendor::mpich, {4, 0}, {5, 0}, "divides by zero"},
    Exclusion{"Reduce_scatter_block, count -1", Vendor::mpich, {4, 0}, {5, 0}, "crashes"},
    Exclusion{"status of Isendrecv", Vendor::mpich, {4, 0}, {5, 0}, "is not set"},
    Exclusion{"Isendrecv_replace", Vendor::mpich, {4, 0}, {5, 0}, "receives damaged data"},
    Exclusion{"large messages of mixed types",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "one that arrives in segments is said to be of a mismatched datatype"},
    Exclusion{"Allreduce, count -1", Vendor::mpich, {4, 0}, {5, 0}, "crashes"},
    Exclusion{"blocking reduce_scatter in place",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "copies overlapping memory and aborts where counts are unequal"},
    Exclusion{"long double complex in parts",
              Vendor::mpich,
              {4, 0},
              {5, 0},
              "aborts where a segment of a large message ends inside an element"},
    Exclusion{
        "status after Request_get_status",
        Vendor::mpich,
        {4, 0},
        {5, 0},
        "a persistent receive's status is empty once Request_get_status has seen it complete"},
    Exclusion{"inactive persistent collectives in arrays",
              Vendor::mpich,
              {4, 0},
              {4, 0},
              "Waitany and its kin report an inactive persistent collective again and again"},
    Exclusion{
        "Testall of a persistent collective",
        Vendor::mpich,
        {4, 0},
        {5, 0},
        "on host memory without Accord, too, MPI_Testall completes a round that went well, "
        "and then raises MPI_ERR_IN_STATUS with MPI_SUCCESS in every status: where errors are "
        "fatal the program ends before anybody could look at them"},
};

bool hit(const Flavour& flavour, const Exclusion& exclusion) {
  const auto version = std::tuple(flavour.major, flavour.minor);
  return flavour.vendor == exclusion.vendor &&
         version >= std::tuple(exclusion.first.major, exclusion.first.minor) &&
         version <= std::tuple(exclusion.last.major, exclusion.last.minor);
}

}  // namespace

Flavour read_flavour(const char* text) {
  Flavour flavour;
  flavour.text = std::string(text, std::strcspn(text, "\n,"));
  flavour.vendor =
      std::strstr(text, "Open MPI") != nullptr ? Flavour::Vendor::open_mpi : Flavour::Vendor::mpich;
  const char* digits = text + std::strcspn(text, "0123456789");
  std::sscanf(digits, "%d.%d.%d", &flavour.major, &flavour.minor, &flavour.patch);
  std::replace(flavour.text.begin(), flavour.text.end(), '\t', ' ');
  return flavour;
}

const char* known_defect(const Flavour& flavour, const char* feature) {
  for (const Exclusion& exclusion : kExclusions)
    if (std::strcmp(exclusion.feature, feature) == 0 && hit(flavour, exclusion))
      return exclusion.reason;
  return nullptr;
}

}  // namespace accord::conformance
