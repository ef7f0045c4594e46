// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// One pass of a case over one side. A case is a function of a Run; it is run twice with the same
// random numbers, first with the oracle's MPI on plain host memory, then with the tested MPI on
// whatever memory the case draws. Afterwards every buffer must hold the same bytes on both sides,
// guards and gaps included, and both must have logged the same values. A case therefore states no
// expected result; it only has to be legal and deterministic.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api.h"
#include "communicators.h"
#include "datatypes.h"
#include "elements.h"
#include "flavour.h"
#include "memory.h"
#include "options.h"
#include "random.h"

namespace accord::conformance {

// In the text of a failure that the host MPI had without what is tested.
inline const std::string kOracleMark = "(the oracle itself) ";

struct Environment {
  Options options;
  ApiSet apis;
  Memory memory;
  Flavour flavour;
  std::vector<Element> elements;
  std::vector<Operation> operations;
  std::vector<accord_memory> kinds;  // kinds of memory that buffers may have
  std::unique_ptr<Communicators> oracle_comms;
  std::unique_ptr<Communicators> tested_comms;
  int rank = 0;
  int size = 1;
  int thread_level = MPI_THREAD_SINGLE;
};

enum class Side { oracle, tested };

// Thrown, on all ranks or none and before any call, by a case that this MPI cannot run.
struct Skip {
  std::string reason;
};

struct Buffer {
  const char* role = "";
  accord_memory kind = ACCORD_MEMORY_HOST;
  std::byte* base = nullptr;  // guards included
  std::size_t size_bytes = 0;
  std::ptrdiff_t origin_bytes = 0;  // of the address MPI gets
  std::vector<std::byte> image;     // what was written into it
  std::vector<std::byte> result;    // what is in it at the end
  std::vector<bool> loose;          // bytes that no standard defines; empty: none
  std::vector<bool> soft;  // padding inside predefined pairs: some MPIs write it; empty: none
  std::vector<bool>
      data;  // bytes of the type map, as the harness sees it; not kept for large buffers
  int unordered_group = -1;  // buffers of one group may hold each other's contents
  std::function<void(std::byte* origin, Rng& rng)>
      paint;  // typed values over the random background

  std::byte* pointer() const { return base + origin_bytes; }
};

// A block of a buffer that one argument of a call names.
struct Stretch {
  Buffer* buffer = nullptr;
  const TypeModel* type = nullptr;
  std::ptrdiff_t at_bytes = 0;  // from the origin
  std::int64_t count = 0;
};

struct LogEntry {
  std::string label;
  std::int64_t value;
};

class Run {
 public:
  Run(Environment& environment, Side side, std::int64_t case_number);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool tested() const { return side_ == Side::tested; }
  const Api& api() const { return *api_; }
  const Api& oracle_api() const { return environment_.apis.oracle; }
  const Flavour& flavour() const { return environment_.flavour; }
  const Options& options() const { return environment_.options; }
  const std::vector<Element>& elements() const { return environment_.elements; }
  const std::vector<Operation>& operations() const { return environment_.operations; }
  const Memory& memory() const { return environment_.memory; }
  const Communicators& comms() const {
    return *(tested() ? environment_.tested_comms : environment_.oracle_comms);
  }
  int world_rank() const { return environment_.rank; }
  int world_size() const { return environment_.size; }
  std::uint64_t salt() const { return salt_; }
  bool may_use_threads() const {
    return options().threads && environment_.thread_level == MPI_THREAD_MULTIPLE;
  }

  Rng global;  // same draws on all ranks
  Rng local;   // this rank's own draws
  TypeFactory types;

  // A communicator of this case alone; freed at its end (or by the case, which then sets it to
  // null).
  Comm& fresh_comm(const Comm& parent);

  // From here on every buffer is an allocation of its own.
  void allocate_each() { own_allocations_ = true; }

  // Memory for `span` around the address MPI gets, guards on both sides, filled with random bytes.
  // align_bytes 1 allows any address.
  Buffer& buffer(const char* role, Span span, std::size_t align_bytes);
  // ... for `count` elements of a type.
  Buffer& buffer(const char* role, const TypeModel& type, std::int64_t count,
                 std::size_t align_bytes);

  // Fills a buffer (again): random background by `salt`, then its paint.
  void fill(Buffer& buffer, std::uint64_t salt);
  // Reads the buffer and logs a digest of it: its contents must be equal on both sides at this
  // point.
  void snapshot(const Buffer& buffer);
  // Declares bytes undefined: [first, last) from the origin.
  void set_loose(Buffer& buffer, std::ptrdiff_t first, std::ptrdiff_t last);
  // Declares padding inside predefined types: that of long double undefined (an MPI need not move
  // it), that of pairs soft.
  void set_padding(Buffer& buffer, const TypeModel& type, std::int64_t count,
                   std::ptrdiff_t at_bytes);
  // Declares where data lies: all else must be left alone, by the oracle too.
  void set_data(Buffer& buffer, const TypeModel& type, std::int64_t count, std::ptrdiff_t at_bytes);

  // What is prepared from here on is of so many partitions: each count is a multiple of them.
  void set_partitions(int partitions) { partitions_ = partitions; }
  int partitions() const { return partitions_; }
  void note_stretch(const Stretch& stretch) { stretches_.push_back(stretch); }
  const std::vector<Stretch>& stretches() const { return stretches_; }

  // An operation made by the case, freed at its end or by free_operations().
  void adopt(MPI_Op operation) { user_operations_.push_back(operation); }
  void free_operations();

  // Arrays that MPI calls read until they are complete.
  ArrayRef keep(const std::vector<std::int64_t>& values);
  const MPI_Datatype* keep(std::vector<MPI_Datatype> values);

  // Notes a value that must be equal on both sides.
  void log(std::string label, std::int64_t value) { log_.push_back({std::move(label), value}); }
  // A failure seen by this side alone.
  void fail(std::string text);
  // `code` must be MPI_SUCCESS. Returns whether it is.
  bool check(int code, const char* what);
  // Error class of a code, in the host MPI's numbers.
  int error_class(int code) const;

  // Keeps ranks together without the tested MPI knowing.
  void world_barrier() const;
  MPI_Comm oracle_world() const { return environment_.oracle_comms->world().handle; }

  void describe(const std::string& text);
  // A detail of this rank, printed with --verbose.
  void note(const std::string& text) const;
  const std::string& description() const { return description_; }

  // Corruption modes: whether this pass is to be broken.
  bool corrupting(Corruption corruption) const;

  // Reads all buffers back and frees what the case made.
  void finish();

  const std::deque<Buffer>& buffers() const { return buffers_; }
  Buffer& buffer_at(std::size_t index) { return buffers_[index]; }
  const std::vector<LogEntry>& log_entries() const { return log_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  static void mark(const Buffer& buffer, std::vector<bool>& bytes, std::ptrdiff_t first,
                   std::ptrdiff_t last);
  accord_memory draw_kind();
  void corrupt();

  Environment& environment_;
  Side side_;
  const Api* api_;
  std::uint64_t salt_;
  Rng memory_rng_;
  int mix_kind_ = 0;
  bool own_allocations_ = false;
  int partitions_ = 1;
  std::vector<Stretch> stretches_;
  std::int64_t case_number_;
  std::deque<Buffer> buffers_;
  std::deque<Array> arrays_;
  std::deque<std::vector<MPI_Datatype>> type_arrays_;
  std::deque<Comm> fresh_;
  std::vector<MPI_Op> user_operations_;
  std::vector<LogEntry> log_;
  std::vector<std::string> failures_;
  std::string description_;
};

// Zeroes the bytes of a buffer's contents that nothing defines.
void clear_undefined(const Buffer& buffer, std::vector<std::byte>& bytes);

// What differs between the two passes, in at most a few lines; empty when nothing does.
std::vector<std::string> compare(const Run& oracle, const Run& tested);

}  // namespace accord::conformance
