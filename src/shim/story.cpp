// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "shim/story.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace accord::shim {
namespace {

// MPI_FLOAT is float, as MPI_Allreduce is allreduce.
std::string without_prefix(std::string_view mpi_name) {
  if (mpi_name.starts_with("MPI_")) mpi_name.remove_prefix(4);
  std::string word(mpi_name);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

std::string type_word(const Told& told) {
  if (told.several_types) return "several types";
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (!is_named(told.datatype) || host::Type_get_name(told.datatype, name, &length) != MPI_SUCCESS)
    return "derived type";
  return without_prefix(name);
}

std::string size_words(const Told& told) {
  if (told.read_bytes == told.written_bytes || told.written_bytes == 0)
    return fmt::format("{} B", told.read_bytes);
  if (told.read_bytes == 0) return fmt::format("{} B", told.written_bytes);
  return fmt::format("{} B out {} B in", told.read_bytes, told.written_bytes);
}

std::string memory_words(const Told& told) {
  if (told.send_memory == nullptr || told.recv_memory == nullptr) {
    const char* only = told.send_memory != nullptr ? told.send_memory : told.recv_memory;
    return only != nullptr ? only : "";
  }
  const std::string_view from = told.send_memory;
  return from == told.recv_memory ? std::string(from)
                                  : fmt::format("{} to {}", from, told.recv_memory);
}

}  // namespace

std::string words_of(const CallWords& call) {
  std::string words = call.told.datatype == MPI_DATATYPE_NULL
                          ? "nothing"
                          : fmt::format("{} {}", size_words(call.told), type_word(call.told));
  if (call.op != MPI_OP_NULL) words += fmt::format(" {}", op_word(call.op));
  if (const std::string memory = memory_words(call.told); !memory.empty()) words += " " + memory;
  if (call.in_place) words += " in place";
  if (call.comm == nullptr) return words;
  const CommState& comm = *call.comm;
  if (call.root != CallWords::kNoRoot && !comm.inter) words += fmt::format(", root {}", call.root);
  words += comm.inter ? fmt::format(", intercomm of {} and {}", comm.size, comm.remote_size)
                      : fmt::format(", comm of {}", comm.size);
  return words + fmt::format(", rank {}", comm.rank);
}

stages::Story begin_story(const char* mpi_name) {
  return stages::listening ? stages::begin(without_prefix(mpi_name).c_str()) : nullptr;
}

}  // namespace accord::shim
