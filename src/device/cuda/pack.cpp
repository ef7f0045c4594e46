// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "device/cuda/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "device/cuda/copy.h"
#include "device/cuda/copy_list.h"
#include "device/cuda/modules.h"
#include "device/cuda/pack_kernels.h"
#include "device/pack.h"

namespace accord::device::cuda {
namespace {

// Blocks of a launch at most: two for each multiprocessor of the largest devices of today.
constexpr std::uint64_t kBlocksMax = 264;

// Memory that runs of irregular types take in a context at most.
constexpr std::size_t kRunBytesMax = std::size_t{64} << 20;
constexpr std::size_t kRunTableBytesMin = 4096;

std::atomic<std::uint64_t> launches{0};

// The kernels by word and width: the word is 2^i bytes.
constexpr const char* kNarrow[] = {"accord_pack_1_narrow", "accord_pack_2_narrow",
                                   "accord_pack_4_narrow", "accord_pack_8_narrow",
                                   "accord_pack_16_narrow"};
constexpr const char* kWide[] = {"accord_pack_1_wide", "accord_pack_2_wide", "accord_pack_4_wide",
                                 "accord_pack_8_wide", "accord_pack_16_wide"};

// Runs of irregular types on the device, kept as long as their type lives. Memory is never freed,
// since that would wait for the program's kernels: it is used again, or dies with its context.
class RunTables {
 public:
  // In the current context. unsupported where there is no more room.
  Status find(const Driver& driver, Context context, const std::shared_ptr<const Typemap>& type,
              Stream stream, const Run*& runs) {
    unsigned long long id = 0;
    ACCORD_TRY(status_of(driver, driver.context_get_id(context, &id), symbol::context_get_id));
    const std::lock_guard lock(mutex_);
    Tables& tables = contexts_[id];
    const auto found = tables.of_type.find(type->id());
    if (found == tables.of_type.end()) return upload(driver, tables, type, stream, runs);
    runs = found->second.runs();
    return Status();
  }

 private:
  struct Table {
    std::weak_ptr<const Typemap> type;
    DevicePointer address = 0;
    std::size_t capacity_bytes = 0;

    const Run* runs() const { return reinterpret_cast<const Run*>(address); }
  };
  struct Tables {
    std::map<std::uint64_t, Table> of_type;  // by the id of the type
    std::size_t bytes = 0;
  };

  static Status upload(const Driver& driver, Tables& tables,
                       const std::shared_ptr<const Typemap>& type, Stream stream,
                       const Run*& runs) {
    const std::size_t size_bytes = type->runs().size() * sizeof(Run);
    Table table;
    ACCORD_TRY(take(driver, tables, size_bytes, table));
    table.type = type;
    Result result =
        driver.copy_async(table.address, address_of(type->runs().data()), size_bytes, stream);
    // Other streams may use it from now on.
    if (result == Result::success) result = driver.stream_synchronize(stream);
    ACCORD_TRY(status_of(driver, result, symbol::copy_async));
    tables.of_type[type->id()] = table;
    runs = table.runs();
    return Status();
  }

  // The table of a type that is gone, or a new one.
  static Status take(const Driver& driver, Tables& tables, std::size_t size_bytes, Table& table) {
    for (auto entry = tables.of_type.begin(); entry != tables.of_type.end(); ++entry) {
      if (!entry->second.type.expired() || entry->second.capacity_bytes < size_bytes) continue;
      table = entry->second;
      tables.of_type.erase(entry);
      return Status();
    }
    table.capacity_bytes = std::max(kRunTableBytesMin, std::bit_ceil(size_bytes));
    if (tables.bytes + table.capacity_bytes > kRunBytesMax) {
      return Status(StatusCode::unsupported,
                    fmt::format("{} pack: too many runs of irregular types", driver.runtime));
    }
    ACCORD_TRY(status_of(driver, driver.memory_allocate(&table.address, table.capacity_bytes),
                         symbol::memory_allocate));
    tables.bytes += table.capacity_bytes;
    return Status();
  }

  std::mutex mutex_;
  std::map<unsigned long long, Tables> contexts_;  // by the id of the context
};

RunTables& run_tables() {
  static RunTables& tables = *new RunTables;
  return tables;
}

// Within a device engines move a third of what kernels do, however long the rows are (fft3d of
// 256^3 by alltoallw, blocks of 32 MiB in rows of 256 KiB, 4 ranks on an H100).
constexpr std::size_t kWithinBytesMin = std::size_t{64} << 10;

bool is_on(const Driver& driver, Device device, const void* pointer) {
  auto type = MemoryType::none;
  int ordinal = -1;
  PointerAttribute attributes[] = {PointerAttribute::memory_type, PointerAttribute::device_ordinal};
  void* values[] = {&type, &ordinal};
  return driver.pointer_get_attributes(2, attributes, values, address_of(pointer)) ==
             Result::success &&
         type == MemoryType::device && ordinal == device;
}

// Which of a batch's copies that follow a layout go by kernels.
std::vector<bool> choose_kernels(const Driver& driver, Device device, const CopyBatch& batch) {
  std::vector<bool> chosen;
  for (const LayoutCopy& copy : batch.laid_out) {
    const bool is_long =
        copy.length_bytes >= kWithinBytesMin && !copy.type->dense() && kernels_may_follow(copy);
    chosen.push_back(driver.images.packing != nullptr &&
                     (kernel_pays(copy) || (is_long && is_on(driver, device, copy.elements) &&
                                            is_on(driver, device, copy.other))));
  }
  return chosen;
}

Status launch(const Driver& driver, Context context, const LayoutCopy& copy, Stream stream) {
  PackArguments arguments = pack_arguments(copy);
  const std::size_t word_bytes = pack_word_bytes(copy, arguments);
  const auto* const names = pack_is_narrow(arguments) ? kNarrow : kWide;
  Function function = nullptr;
  ACCORD_TRY(pack_kernels().find(driver, context, names[std::countr_zero(word_bytes)], function));
  if (arguments.runs != nullptr)
    ACCORD_TRY(run_tables().find(driver, context, copy.type, stream, arguments.runs));
  const std::uint64_t words = arguments.length_bytes / word_bytes;
  const std::uint64_t blocks = std::min((words + kPackThreads - 1) / kPackThreads, kBlocksMax);
  void* parameters[] = {&arguments};
  launches.fetch_add(1, std::memory_order_relaxed);
  return status_of(driver,
                   driver.launch_kernel(function, static_cast<unsigned>(blocks), 1, 1, kPackThreads,
                                        1, 1, 0, stream, parameters, nullptr),
                   symbol::launch_kernel);
}

Status enqueue(const Driver& driver, Context context, const CopyBatch& batch,
               const std::vector<bool>& by_kernel, Stream stream) {
  ACCORD_TRY(enqueue_copies(driver, batch.plain.copies(), stream));
  for (std::size_t i = 0; i < batch.laid_out.size(); ++i) {
    const LayoutCopy& copy = batch.laid_out[i];
    if (by_kernel[i]) {
      const Status launched = launch(driver, context, copy, stream);
      if (launched.ok()) continue;
      if (launched.code() != StatusCode::unsupported && launched.code() != StatusCode::no_memory)
        return launched;
    }
    CopyList rows;
    rows.append_rows(copy);
    ACCORD_TRY(enqueue_copies(driver, rows.copies(), stream));
  }
  return Status();
}

// Both sides of each copy that a kernel is for: a buffer may be only partly page-locked, or lie in
// several mappings.
std::vector<ByteRange> ranges_of(const CopyBatch& batch, const std::vector<bool>& by_kernel) {
  std::vector<ByteRange> ranges;
  for (std::size_t i = 0; i < batch.laid_out.size(); ++i) {
    if (!by_kernel[i]) continue;
    const LayoutCopy& copy = batch.laid_out[i];
    const auto [low, high] = copy.bounds();
    ranges.push_back({copy.elements + low, copy.elements + high - 1});
    const auto [other_low, other_high] = copy.other_bounds();
    ranges.push_back({copy.other + other_low, copy.other + other_high - 1});
  }
  return ranges;
}

bool any(const std::vector<bool>& chosen) {
  return std::ranges::find(chosen, true) != chosen.end();
}

Status begin(const Driver& driver, Device device, const CopyBatch& batch,
             const std::vector<bool>& by_kernel, CopyTicket& ticket) {
  if (any(by_kernel)) {
    ContextScope scope(driver);
    const Status entered =
        enter_for_kernel(driver, device, ranges_of(batch, by_kernel), "pack", scope);
    if (entered.ok()) {
      return begin_work(
          driver, scope,
          [&](Stream stream) { return enqueue(driver, scope.context(), batch, by_kernel, stream); },
          ticket);
    }
    // Memory that only copies reach: of another context, or not page-locked.
    const bool unreachable =
        entered.code() == StatusCode::unsupported || entered.code() == StatusCode::invalid_argument;
    if (!unreachable) return entered;
  }
  return copy_begin(driver, device, rows_of(batch).copies(), ticket);
}

}  // namespace

Kernels& pack_kernels() {
  static Kernels& loaded = *new Kernels(&KernelImages::packing, "kernels for derived types");
  return loaded;
}

std::uint64_t pack_launches() noexcept { return launches.load(std::memory_order_relaxed); }

Status batch_begin(const Driver& driver, Device device, const CopyBatch& batch,
                   CopyTicket& ticket) {
  ticket.handle = nullptr;
  if (batch.laid_out.empty()) return copy_list_begin(driver, device, batch.plain.copies(), ticket);
  return begin(driver, device, batch, choose_kernels(driver, device, batch), ticket);
}

Status copy_batch(const Driver& driver, Device device, const CopyBatch& batch) {
  if (batch.laid_out.empty()) return copy_list(driver, device, batch.plain.copies());
  const std::vector<bool> by_kernel = choose_kernels(driver, device, batch);
  if (!any(by_kernel)) return copy(driver, device, rows_of(batch).copies());
  CopyTicket ticket;
  ACCORD_TRY(begin(driver, device, batch, by_kernel, ticket));
  for (bool done = false; !done;) ACCORD_TRY(copy_done(driver, ticket, done));
  return Status();
}

}  // namespace accord::device::cuda
