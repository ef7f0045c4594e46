// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "bench/session.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "bench/mpi_types.h"

namespace accord::bench {
namespace {

bool on_accelerator(Memory memory) { return memory != Memory::host; }

}  // namespace

Session::Session(Options given) : options(std::move(given)), program(program_mpi()) {
  std::string why_not;
  if (!find_host_mpi(host, why_not)) throw std::runtime_error(why_not);
  host.table.Comm_rank(MPI_COMM_WORLD, &rank);
  host.table.Comm_size(MPI_COMM_WORLD, &ranks);
  host.table.Comm_dup(MPI_COMM_WORLD, &control_);
  MPI_Comm node = MPI_COMM_NULL;
  host.table.Comm_split_type(control_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  host.table.Comm_rank(node, &local_rank);
  host.table.Comm_size(node, &local_ranks);
  host.table.Comm_free(&node);
  choose_element();
  choose_devices();
}

Session::~Session() {
  if (control_ != MPI_COMM_NULL) host.table.Comm_free(&control_);
}

void Session::choose_element() {
  element = find_element(options.type);
  mpi_type = mpi_type_of(options.type);
  if (element == nullptr || mpi_type == MPI_DATATYPE_NULL) {
    throw UsageError(fmt::format("this MPI has no type {}", options.type));
  }
  for (const NamedReduceOp& row : reduce_ops()) {
    if (options.op == row.name) op = row.op;
  }
  mpi_op = mpi_op_of(op);
}

void Session::choose_devices() {
  std::string why_not;
  accord = AccordLibrary::find(options.library_path, why_not);
  const bool needed = on_accelerator(options.send_memory) || on_accelerator(options.recv_memory);
  const std::string cause = first_text(accord == nullptr ? why_not : "");
  if (!cause.empty()) {
    accord.reset();
    if (needed) {
      throw UsageError(fmt::format("memory other than host needs Accord: {}", cause));
    }
    return;
  }
  if (needed || intercepted()) device = accord->use_device_of(local_rank);
  if (!needed) return;
  if (device < 0) throw std::runtime_error("Accord shows no device");
  if (accord->runtime_name() == "cuda") {
    cuda = CudaLibrary::open(device, why_not);
    if (cuda == nullptr) throw std::runtime_error(why_not);
  }
}

void Session::barrier() const { host.table.Barrier.blocking(control_); }

std::string Session::first_text(const std::string& text) const {
  int speaker = text.empty() ? ranks : rank;
  int first = 0;
  host.table.Allreduce.blocking(&speaker, &first, 1, MPI_INT, MPI_MIN, control_);
  if (first == ranks) return "";
  std::array<char, 512> shared{};
  std::strncpy(shared.data(), text.c_str(), shared.size() - 1);
  host.table.Bcast.blocking(shared.data(), static_cast<int>(shared.size()), MPI_CHAR, first,
                            control_);
  return shared.data();
}

double Session::max(double value) const {
  double result = 0;
  host.table.Allreduce.blocking(&value, &result, 1, MPI_DOUBLE, MPI_MAX, control_);
  return result;
}

double Session::min(double value) const { return -max(-value); }

double Session::sum(double value) const {
  double result = 0;
  host.table.Allreduce.blocking(&value, &result, 1, MPI_DOUBLE, MPI_SUM, control_);
  return result;
}

void Session::broadcast(void* bytes, std::size_t size_bytes) const {
  host.table.Bcast.blocking(bytes, static_cast<int>(size_bytes), MPI_BYTE, 0, control_);
}

std::vector<std::vector<unsigned char>> Session::gather_bytes(const void* bytes,
                                                              std::size_t size_bytes) const {
  const int count = static_cast<int>(size_bytes);
  std::vector<unsigned char> all(size_bytes * static_cast<std::size_t>(ranks));
  host.table.Allgather.blocking(bytes, count, MPI_BYTE, all.data(), count, MPI_BYTE, control_);
  std::vector<std::vector<unsigned char>> parts;
  for (std::size_t at = 0; at < all.size(); at += size_bytes) {
    parts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(at),
                       all.begin() + static_cast<std::ptrdiff_t>(at + size_bytes));
  }
  return parts;
}

std::string Session::shared_gpu() const {
  const CudaLibrary::Uuid mine = cuda->uuid();
  const auto uuids = gather_bytes(mine.data(), mine.size());
  for (std::size_t a = 0; a < uuids.size(); ++a) {
    for (std::size_t b = a + 1; b < uuids.size(); ++b) {
      if (uuids[a] == uuids[b]) return fmt::format("ranks {} and {} share a GPU", a, b);
    }
  }
  return "";
}

void Session::max_to_root(double* values, int count) const {
  const void* send = rank == 0 ? MPI_IN_PLACE : values;
  host.table.Reduce.blocking(send, rank == 0 ? values : nullptr, count, MPI_DOUBLE, MPI_MAX, 0,
                             control_);
}

}  // namespace accord::bench
