// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// NVSHMEM's collectives that the host calls, on memory of its symmetric heap: the call, then a wait
// for the stream. It may hand them on to NCCL, which the records tell.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "bench/environment.h"
#include "bench/nvshmem_library.h"
#include "bench/way.h"

namespace accord::bench {
namespace {

struct NvshmemOperation {
  const char* name;
  const char* word;  // NVSHMEM's; of a reduction what follows the operation
};
constexpr NvshmemOperation kNvshmemOperations[] = {
    {"barrier", "barrier"},
    {"bcast", "broadcast"},
    {"allgather", "fcollect"},
    {"alltoall", "alltoall"},
    {"allreduce", "reduce"},
    {"reduce_scatter", "reducescatter"},
    {"reduce_scatter_block", "reducescatter"},
};

const NvshmemOperation* find_nvshmem_operation(const char* name) {
  const auto found = std::ranges::find_if(kNvshmemOperations, [=](const NvshmemOperation& row) {
    return std::strcmp(row.name, name) == 0;
  });
  return found == std::end(kNvshmemOperations) ? nullptr : found;
}

std::string_view nvshmem_word(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::prod:
      return "prod";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      return "max";
    case ReduceOp::band:
      return "and";
    case ReduceOp::bor:
      return "or";
    case ReduceOp::bxor:
      return "xor";
    default:
      return "no";
  }
}

// NVSHMEM of this process: begun by all ranks together.
class Nvshmem {
 public:
  // Null with the reason, the same on all ranks, in `why_not`.
  static std::unique_ptr<Nvshmem> begin(const Session& session, std::string& why_not);
  ~Nvshmem() { library_->finalize(); }
  Nvshmem(const Nvshmem&) = delete;
  Nvshmem& operator=(const Nvshmem&) = delete;

  const NvshmemLibrary& library() const { return *library_; }
  NvshmemLibrary::Stream stream() const { return stream_; }
  const std::string& detail() const { return detail_; }

 private:
  explicit Nvshmem(std::unique_ptr<NvshmemLibrary> library) : library_(std::move(library)) {}
  int initialize(const Session& session);
  void describe();

  std::unique_ptr<NvshmemLibrary> library_;
  NvshmemLibrary::Stream stream_ = nullptr;
  std::string detail_;
};

std::unique_ptr<Nvshmem> Nvshmem::begin(const Session& session, std::string& why_not) {
  const Options& options = session.options;
  if (session.cuda == nullptr || options.send_memory != Memory::device ||
      options.recv_memory != Memory::device) {
    why_not = "NVSHMEM needs CUDA device memory on both sides";
    return nullptr;
  }
  std::string local;
  auto library = NvshmemLibrary::open(local);
  why_not = session.first_text(library == nullptr ? local : "");
  if (why_not.empty()) why_not = session.shared_gpu();
  if (!why_not.empty()) return nullptr;
  std::unique_ptr<Nvshmem> made(new Nvshmem(std::move(library)));
  const int code = made->initialize(session);
  why_not =
      session.first_text(code == 0 ? "" : fmt::format("NVSHMEM does not start: error {}", code));
  if (!why_not.empty()) {
    // Those where it did start would wait for the others for ever.
    (void)made.release();
    return nullptr;
  }
  made->stream_ = session.cuda->make_stream();
  made->describe();
  return made;
}

int Nvshmem::initialize(const Session& session) {
  NvshmemUniqueId id;
  const int code = session.rank == 0 ? library_->get_unique_id(&id) : 0;
  if (session.max(code == 0 ? 0 : 1) > 0) return code == 0 ? -1 : code;
  session.broadcast(&id, sizeof id);
  NvshmemInitAttributes attributes;
  library_->set_unique_id(session.rank, session.ranks, &id, &attributes);
  if (const int status = library_->init(NvshmemLibrary::kInitWithUniqueId, &attributes);
      status != 0)
    return status;
  return library_->init_status() >= NvshmemLibrary::kIsInitialized ? 0 : -1;
}

void Nvshmem::describe() {
  const bool has_nccl = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  detail_ = fmt::format("NVSHMEM {}, {} NCCL in the process", library_->version(),
                        has_nccl ? "with" : "without");
  for (const char* prefix : {"NVSHMEM_", "NCCL_"}) {
    const std::string settings = settings_in_environment(prefix);
    if (!settings.empty()) detail_ += "; " + settings;
  }
}

class NvshmemWay : public Way {
 public:
  explicit NvshmemWay(const Session& session) : session_(session) {}
  ~NvshmemWay() override { free_heap(); }

  std::string name() const override { return "nvshmem"; }

  std::string why_not(const Operation& operation) override {
    if (find_nvshmem_operation(operation.name) == nullptr) return "NVSHMEM has no such operation";
    if (nvshmem_ == nullptr && reason_.empty()) nvshmem_ = Nvshmem::begin(session_, reason_);
    if (nvshmem_ == nullptr) return reason_;
    if (!operation.has_data) return "";
    if (find_function(operation) == nullptr) {
      return fmt::format("NVSHMEM has no {}{} of {}", operation.name,
                         operation.reduces ? ", " + session_.options.op : "",
                         session_.options.type);
    }
    return "";
  }

  std::string prepare(const Trial& trial) override {
    const bool equal_blocks = std::ranges::all_of(
        trial.shape.counts, [&](int count) { return count == trial.shape.counts[0]; });
    if (!equal_blocks) return "NVSHMEM has equal blocks only";
    reserve_heap(trial);
    trial_ = &trial;
    function_ = trial.operation->has_data ? find_function(*trial.operation) : nullptr;
    return "";
  }

  void run() override {
    if (const int code = start(); code != 0)
      throw std::runtime_error(fmt::format("NVSHMEM: error {}", code));
    session_.cuda->synchronize(nvshmem_->stream());
  }

  void release() override { trial_ = nullptr; }
  Buffers buffers(const Trial&) const override { return heap_; }
  std::string detail() const override { return nvshmem_ == nullptr ? "" : nvshmem_->detail(); }

 private:
  static bool is_rooted(const Operation& operation) {
    return std::strcmp(operation.name, "bcast") == 0;
  }

  // A Collective or a RootedCollective.
  void* find_function(const Operation& operation) const {
    const NvshmemLibrary& library = nvshmem_->library();
    std::string what = find_nvshmem_operation(operation.name)->word;
    if (operation.reduces) what = fmt::format("{}_{}", nvshmem_word(session_.op), what);
    const std::string& type = session_.options.type;
    return is_rooted(operation) ? reinterpret_cast<void*>(library.rooted_collective(what, type))
                                : reinterpret_cast<void*>(library.collective(what, type));
  }

  int start() const {
    constexpr NvshmemLibrary::Team kWorld = NvshmemLibrary::kWorld;
    const NvshmemLibrary::Stream stream = nvshmem_->stream();
    const Shape& shape = trial_->shape;
    if (function_ == nullptr) {
      nvshmem_->library().barrier_all(stream);
      return 0;
    }
    if (is_rooted(*trial_->operation)) {
      return reinterpret_cast<NvshmemLibrary::RootedCollective>(function_)(
          kWorld, heap_.recv, heap_.send, shape.count(), shape.root, stream);
    }
    return reinterpret_cast<NvshmemLibrary::Collective>(function_)(kWorld, heap_.recv, heap_.send,
                                                                   shape.count(), stream);
  }

  // The heap is symmetric: both buffers on every rank, for the needs of the largest.
  void reserve_heap(const Trial& trial) {
    const auto elements = static_cast<double>(std::max(trial.extent.send, trial.extent.recv));
    const auto needed =
        static_cast<std::size_t>(session_.max(elements)) * session_.element->size_bytes;
    if (needed <= heap_bytes_) return;
    free_heap();
    constexpr std::size_t kLeastBytes = std::size_t{1} << 20;
    const std::size_t size_bytes = std::max(needed, kLeastBytes);
    heap_.send = nvshmem_->library().allocate(size_bytes);
    heap_.recv = nvshmem_->library().allocate(size_bytes);
    const bool missing = heap_.send == nullptr || heap_.recv == nullptr;
    if (session_.max(missing ? 1 : 0) > 0) {
      heap_ = {};  // kept: only all ranks together can free it
      throw std::runtime_error(fmt::format("NVSHMEM's heap has no {} bytes twice", size_bytes));
    }
    heap_bytes_ = size_bytes;
  }

  void free_heap() noexcept {
    for (void* memory : {heap_.send, heap_.recv}) {
      if (memory != nullptr) nvshmem_->library().free(memory);
    }
    heap_ = {};
    heap_bytes_ = 0;
  }

  const Session& session_;
  std::unique_ptr<Nvshmem> nvshmem_;
  std::string reason_;  // why there is none
  const Trial* trial_ = nullptr;
  void* function_ = nullptr;
  Buffers heap_;
  std::size_t heap_bytes_ = 0;
};

}  // namespace

std::unique_ptr<Way> make_nvshmem(const Session& session) {
  return std::make_unique<NvshmemWay>(session);
}

}  // namespace accord::bench
