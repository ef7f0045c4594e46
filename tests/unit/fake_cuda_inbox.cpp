// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "fake_cuda_inbox.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "device/inbox.h"
#include "device/reduce_on_host.h"
#include "fake_cuda_direct.h"
#include "fake_cuda_kernels.h"

namespace accord::device::cuda {
namespace {

using Unit = std::array<std::byte, kInboxUnitBytes>;

// That a resident kernel has left; with state.mutex.
std::condition_variable& departure = *new std::condition_variable;
std::atomic<unsigned> launches = 0;
std::atomic<unsigned> residents = 0;
std::atomic<unsigned> blocks_of_last = 0;
std::atomic<std::uint64_t> held_ns = 0;  // 0: time runs
std::atomic<bool> departures_held = false;
std::atomic<unsigned> departing = 0;
std::atomic<int> dismissals = 0;  // blocks of wide kernels that shall leave at once
std::atomic<int> dismissed = 0;   // those that have

std::uint64_t running_ns() {
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

std::uint64_t now_ns() {
  const std::uint64_t held = held_ns;
  return held != 0 ? held : running_ns();
}

std::uint64_t load(std::uint64_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

bool has(std::uint64_t ranks, int rank) { return (ranks & inbox_bit(rank)) != 0; }

// What is stored and loaded at once: a quarter of a unit's data and the epoch.
constexpr std::size_t kParts = kInboxUnitBytes / sizeof(std::uint32_t);

std::uint64_t& part_of(std::byte* inbox, int lane, std::size_t lane_bytes, std::size_t unit,
                       std::size_t part) {
  std::byte* const word =
      inbox + inbox_word_offset(lane, lane_bytes, unit, part / kInboxWordsPerUnit);
  return reinterpret_cast<std::uint64_t*>(word)[part % kInboxWordsPerUnit];
}

enum class Outcome { working, idle, left, faulted };

// One block: it does those units of each exchange that its threads would have.
class FakeBlock {
 public:
  FakeBlock(const InboxLaunch& launch, unsigned index, unsigned blocks, FakeResident kind)
      : control_(launch.control),
        launch_(launch.number),
        index_(index),
        blocks_(blocks),
        kind_(kind) {
    linger_ns_ = launch.linger_us * 1000;
    number_ = (load(control_->answers[index]) >> 1) + 1;
    since_ns_ = now_ns();
  }

  // Goes on as far as it gets without waiting.
  Outcome step(Context context) {
    if (receiving_) return receive();
    if (leaving_) return leave();
    if (!rung()) {
      if (blocks_ > 1 && dismissals > 0) {
        --dismissals;
        store(control_->left[index_], launch_);
        ++dismissed;
        return Outcome::left;
      }
      if (load(control_->doorbells[index_].newest_launch) == launch_ &&
          now_ns() - since_ns_ < linger_ns_)
        return Outcome::idle;
      leaving_ = true;
      ++departing;
      return Outcome::working;
    }
    if (kind_ == FakeResident::direct) return do_direct_work(context);
    if (!can_address(context)) return Outcome::faulted;
    linger_ns_ = command_.linger_us * std::uint64_t{1000};
    if (inbox_number_ != command_.inbox_number) {
      std::memcpy(inboxes_.data(), reinterpret_cast<const void*>(command_.inbox),
                  kInboxHeaderBytes);
      inbox_number_ = command_.inbox_number;
    }
    if ((command_.flags & kInboxSend) != 0) in_pieces() ? send_pieces() : send();
    receiving_ = true;
    next_ = first();
    deadline_ns_ = now_ns() + command_.wait_us * std::uint64_t{1000};
    return receive();
  }

 private:
  bool rung() {
    std::array<std::uint32_t, kInboxCommandWords> words;
    for (unsigned i = 0; i < kInboxCommandWords; ++i) {
      const std::uint64_t word = load(control_->doorbells[index_].words[i]);
      if (word >> 32 != static_cast<std::uint32_t>(number_)) return false;
      words[i] = static_cast<std::uint32_t>(word);
    }
    std::memcpy(&command_, words.data(), sizeof command_);
    return true;
  }

  // Whether all that the command names lies where this kernel may reach. Where dst is on the host
  // the answer has to come after it, which the command must ask for.
  bool can_address(Context context) const {
    const std::lock_guard lock(state.mutex);
    const auto reaches = [&](std::uint64_t address, std::size_t size_bytes) {
      return kernel_can_address(reinterpret_cast<const void*>(address), size_bytes, context);
    };
    const std::uint64_t own = inbox_bit(command_.rank);
    const bool own_from_source = (command_.flags & kInboxOwnFromSource) != 0;
    bool good = reaches(command_.inbox, kInboxHeaderBytes);
    for (int peer = 0; in_pieces() && good && peer <= last(); ++peer) {
      const InboxPiece& one = piece(peer);
      good =
          (one.send_bytes == 0 || reaches(one.src, one.send_bytes)) &&
          (one.receive_bytes == 0 || reaches(one.dst, one.receive_bytes)) &&
          (peer != command_.rank || one.receive_bytes == 0 || reaches(one.src, one.receive_bytes));
    }
    if (in_pieces()) return good;
    for (int peer = 0; good && peer < kInboxRanksMax; ++peer) {
      const auto at = static_cast<std::size_t>(peer) * command_.block_bytes;
      if (has(command_.send_to | (own_from_source ? own : 0), peer))
        good = reaches(command_.src + (strided(kInboxSendStride) ? at : 0), command_.block_bytes);
      if (good && has(command_.receive_from, peer))
        good =
            reaches(command_.dst + (strided(kInboxReceiveStride) ? at : 0), command_.block_bytes);
    }
    const auto dst = find(static_cast<std::uintptr_t>(command_.dst));
    const bool on_host = dst != state.allocations.end() && dst->second.type == MemoryType::host;
    return good && (!on_host || (command_.flags & kInboxToHost) != 0);
  }

  int lane_of(int rank) const {
    return inbox_lane(rank, (command_.flags & kInboxSecondLanes) != 0 ? 1 : 0);
  }
  bool strided(std::uint32_t flag) const { return (command_.flags & flag) != 0; }
  bool in_pieces() const { return (command_.flags & kInboxInPieces) != 0; }
  int last() const {
    return static_cast<int>(std::bit_width(command_.send_to | command_.receive_from)) - 1;
  }
  const InboxPiece& piece(int rank) const { return control_->pieces[index_][rank]; }
  std::size_t units() const {
    if (in_pieces()) return piece(last()).receive_end;
    return (command_.block_bytes + kInboxUnitBytes - 1) / kInboxUnitBytes;
  }
  std::size_t length(std::size_t unit) const {
    return std::min(kInboxUnitBytes, command_.block_bytes - unit * kInboxUnitBytes);
  }
  std::size_t first() const { return std::size_t{index_} * kInboxThreads; }
  std::size_t after(std::size_t unit) const {
    return (unit + 1) % kInboxThreads != 0 ? unit + 1
                                           : unit + 1 + (blocks_ - 1) * std::size_t{kInboxThreads};
  }

  Unit own(int peer, std::size_t unit) const {
    const std::size_t block = strided(kInboxSendStride) ? command_.block_bytes : 0;
    Unit data{};
    std::memcpy(data.data(),
                reinterpret_cast<const std::byte*>(command_.src) +
                    static_cast<std::size_t>(peer) * block + unit * kInboxUnitBytes,
                length(unit));
    return data;
  }

  void send() {
    for (int peer = 0; peer < kInboxRanksMax; ++peer) {
      if (!has(command_.send_to, peer)) continue;
      for (std::size_t unit = first(); unit < units(); unit = after(unit))
        put(peer, unit, own(peer, unit));
    }
  }

  void put(int peer, std::size_t unit, const Unit& data) const {
    auto* const inbox = reinterpret_cast<std::byte*>(inboxes_[static_cast<std::size_t>(peer)]);
    for (std::size_t part = 0; part < kParts; ++part) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, data.data() + part * sizeof bits, sizeof bits);
      store(part_of(inbox, lane_of(command_.rank), command_.lane_bytes, unit, part),
            std::uint64_t{command_.epoch} << 32 | bits);
    }
  }

  // The rank that a unit is of which is numbered so, and which one of that rank it is.
  template <std::uint32_t InboxPiece::*kEnd>
  int rank_of(std::size_t number, std::size_t& unit) const {
    int rank = 0;
    while (number >= piece(rank).*kEnd) ++rank;
    unit = rank == 0 ? number : number - piece(rank - 1).*kEnd;
    return rank;
  }
  static std::size_t length_in(std::size_t size_bytes, std::size_t unit) {
    return std::min(kInboxUnitBytes, size_bytes - unit * kInboxUnitBytes);
  }
  Unit load_from(std::uint64_t src, std::size_t size_bytes, std::size_t unit) const {
    Unit data{};
    std::memcpy(data.data(), reinterpret_cast<const std::byte*>(src) + unit * kInboxUnitBytes,
                length_in(size_bytes, unit));
    return data;
  }

  void send_pieces() {
    for (std::size_t number = first(); number < piece(last()).send_end; number = after(number)) {
      std::size_t unit = 0;
      const int rank = rank_of<&InboxPiece::send_end>(number, unit);
      put(rank, unit, load_from(piece(rank).src, piece(rank).send_bytes, unit));
    }
  }

  bool receive_piece(std::size_t number) const {
    std::size_t unit = 0;
    const int rank = rank_of<&InboxPiece::receive_end>(number, unit);
    const InboxPiece& one = piece(rank);
    Unit data{};
    if (rank == command_.rank) {
      data = load_from(one.src, one.receive_bytes, unit);
    } else if (!take(rank, unit, data)) {
      return false;
    }
    std::memcpy(reinterpret_cast<std::byte*>(one.dst) + unit * kInboxUnitBytes, data.data(),
                length_in(one.receive_bytes, unit));
    return true;
  }

  // False: not there yet.
  bool take(int peer, std::size_t unit, Unit& data) const {
    if (peer == command_.rank && (command_.flags & kInboxOwnFromSource) != 0) {
      data = own(peer, unit);
      return true;
    }
    auto* const inbox = reinterpret_cast<std::byte*>(command_.inbox);
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::uint64_t got =
          load(part_of(inbox, lane_of(peer), command_.lane_bytes, unit, part));
      if (got >> 32 != command_.epoch) return false;
      const auto bits = static_cast<std::uint32_t>(got);
      std::memcpy(data.data() + part * sizeof bits, &bits, sizeof bits);
    }
    return true;
  }

  bool receive_unit(std::size_t unit) const {
    if (in_pieces()) return receive_piece(unit);
    const auto op = static_cast<ReduceOp>(command_.op);
    const auto element = static_cast<Element>(command_.element);
    auto* const dst = reinterpret_cast<std::byte*>(command_.dst) + unit * kInboxUnitBytes;
    const std::size_t stride = strided(kInboxReceiveStride) ? command_.block_bytes : 0;
    Unit sum{};
    bool is_first = true;
    for (int peer = 0; peer < kInboxRanksMax; ++peer) {
      if (!has(command_.receive_from, peer)) continue;
      Unit data{};
      if (!take(peer, unit, data)) return false;
      if (op == ReduceOp::none) {
        std::memcpy(dst + static_cast<std::size_t>(peer) * stride, data.data(), length(unit));
      } else if (is_first) {
        sum = data;
      } else {
        const void* const sources[] = {sum.data(), data.data()};
        reduce_on_host(
            {sum.data(), sources, kInboxUnitBytes / element_bytes(element), op, element});
      }
      is_first = false;
    }
    if (op != ReduceOp::none && !is_first) std::memcpy(dst, sum.data(), length(unit));
    return true;
  }

  Outcome do_direct_work(Context context) {
    const auto command = std::bit_cast<DirectCommand>(command_);
    linger_ns_ = command.linger_us * std::uint64_t{1000};
    FakeDirectWork work(command, control_->pieces[index_], context);
    if (!work.can_address()) return Outcome::faulted;
    for (std::size_t unit = first(); unit < work.units(); unit = after(unit)) work.run(unit);
    answer(true);
    return Outcome::working;
  }

  void answer(bool all) {
    store(control_->answers[index_], number_ << 1 | (all ? 0 : 1));
    ++number_;
    receiving_ = false;
    since_ns_ = now_ns();
  }

  // Whoever rings from now on is not heard.
  Outcome leave() {
    if (departures_held) return Outcome::idle;
    --departing;
    store(control_->left[index_], launch_);
    return Outcome::left;
  }

  Outcome receive() {
    while (next_ < units() && receive_unit(next_)) next_ = after(next_);
    const bool all = next_ >= units();
    if (!all && now_ns() <= deadline_ns_) return Outcome::idle;
    answer(all);
    return Outcome::working;
  }

  InboxControl* control_;
  std::uint64_t launch_;
  unsigned index_;
  unsigned blocks_;
  FakeResident kind_;
  std::uint64_t number_ = 0;  // of the command it waits for, or is at
  std::uint64_t since_ns_ = 0;
  std::uint64_t linger_ns_ = 0;
  InboxCommand command_{};
  std::uint32_t inbox_number_ = 0;  // whose header follows
  std::array<std::uint64_t, kInboxRanksMax> inboxes_{};
  bool leaving_ = false;
  bool receiving_ = false;
  std::size_t next_ = 0;  // unit to receive
  std::uint64_t deadline_ns_ = 0;
};

// Until all blocks have left, or one has faulted and taken the others with it.
Outcome play(const InboxLaunch& launch, unsigned blocks, Context context, FakeResident kind) {
  std::vector<FakeBlock> staying;
  for (unsigned index = 0; index < blocks; ++index)
    staying.emplace_back(launch, index, blocks, kind);
  while (!staying.empty()) {
    bool idle = true;
    for (std::size_t i = 0; i < staying.size();) {
      const Outcome outcome = staying[i].step(context);
      if (outcome == Outcome::faulted) return outcome;
      idle = idle && outcome == Outcome::idle;
      if (outcome == Outcome::left) {
        // The order of the blocks is nobody's business.
        std::swap(staying[i], staying.back());
        staying.pop_back();
      } else {
        ++i;
      }
    }
    if (idle) std::this_thread::yield();
  }
  return Outcome::left;
}

}  // namespace

Result launch_inbox(Stream stream, unsigned blocks, InboxLaunch launch, FakeResident kind) {
  if (std::getenv("FAKE_CUDA_NO_LAUNCH") != nullptr) return Result::out_of_memory;
  const std::uint64_t turn = stream->residents_launched++;
  ++launches;
  ++residents;
  blocks_of_last = blocks;
  std::thread([=] {
    std::unique_lock lock(state.mutex);
    departure.wait(lock, [&] { return stream->residents_left == turn; });
    lock.unlock();
    const Outcome outcome = play(launch, blocks, stream->context, kind);
    lock.lock();
    if (outcome == Outcome::faulted) stream->context->failed = kIllegalAddress;
    ++stream->residents_left;
    --residents;
    departure.notify_all();
  }).detach();
  return Result::success;
}

void await_residents(std::unique_lock<std::mutex>& lock, const StreamHandle& stream) {
  departure.wait(lock, [&] { return stream.residents_left == stream.residents_launched; });
}

void await_residents(std::unique_lock<std::mutex>& lock, const ContextHandle& context) {
  departure.wait(lock, [&] {
    return std::all_of(state.streams.begin(), state.streams.end(), [&](const StreamHandle* stream) {
      return stream->context != &context || stream->residents_left == stream->residents_launched;
    });
  });
}

}  // namespace accord::device::cuda

extern "C" {

void fake_cuda_hold_time() { accord::device::cuda::held_ns = accord::device::cuda::running_ns(); }
void fake_cuda_pass_time(unsigned us) { accord::device::cuda::held_ns += std::uint64_t{us} * 1000; }
void fake_cuda_release_time() { accord::device::cuda::held_ns = 0; }
void fake_cuda_hold_departures(bool held) { accord::device::cuda::departures_held = held; }
void fake_cuda_dismiss(int blocks) {
  accord::device::cuda::dismissed = 0;
  accord::device::cuda::dismissals = blocks;
  while (accord::device::cuda::dismissed < blocks) std::this_thread::yield();
}
unsigned fake_cuda_blocks() { return accord::device::cuda::blocks_of_last; }
unsigned fake_cuda_departing() { return accord::device::cuda::departing; }
unsigned fake_cuda_launches() { return accord::device::cuda::launches; }
unsigned fake_cuda_residents() { return accord::device::cuda::residents; }

}  // extern "C"
