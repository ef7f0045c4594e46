// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
//
// Messages that go between two workers piece by piece, put by who carries them (carriage.h) to
// where they land (landing.h); either end may be a rank or the proxy of its node. A piece is put
// only where the landing end has granted it room, and it takes host memory to carry only what has
// been granted: so whoever holds memory waits for copies and the network alone, whatever others
// fill, and the landing end knows of all that may still be written to it. One of these a worker:
// it knows which messages are under way, brings them what the other end tells, and has their
// memory. Used with the worker locked.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/staging_pool.h"
#include "net/worker.h"

namespace accord::net {

// What one end tells the other. The bytes of a note follow it.
struct FreightNote {
  enum class What : std::uint32_t {
    begin,    // the carrier: here I am; bytes: its name, then how its worker is reached
    grant,    // the landing: put these bytes of the message there; bytes: the remote key
    filled,   // the carrier: they are there
    refusal,  // the landing: no more of it; bytes: why
    end,      // the carrier: nothing is on its way any more, and no more will come; bytes: why
  };
  What what{};
  std::uint32_t code = 0;  // StatusCode of a refusal or end
  std::uint64_t to = 0;    // the number of the end that hears it
  std::uint64_t from = 0;  // begin: the number of the carrier's
  std::uint64_t offset_bytes = 0;
  std::uint64_t size_bytes = 0;  // begin: of the message
  std::uint64_t address = 0;
  std::uint64_t name_bytes = 0;
};

// One end of such a message.
class FreightEnd {
 public:
  virtual void hear(const FreightNote& note, Bytes bytes) = 0;

 protected:
  ~FreightEnd() = default;
};

class Freight {
 public:
  struct Bounds {
    std::size_t piece_bytes = 0;
    std::size_t pieces_of_one = 0;  // that one message has under way
    std::size_t bytes_max = 0;      // of all pieces that land, and once more of those carried
  };
  // `name`: who this is, for errors of the other end.
  Freight(Worker& worker, const Bounds& bounds, std::string name);
  // With no message under way; before its worker closes.
  ~Freight();
  Freight(const Freight&) = delete;
  Freight& operator=(const Freight&) = delete;

  Worker& worker() const noexcept { return worker_; }
  const Bounds& bounds() const noexcept { return bounds_; }
  const std::string& name() const noexcept { return name_; }

  std::uint64_t next_number() noexcept { return ++last_number_; }
  void add_landing(std::uint64_t number, FreightEnd& end);
  void add_carriage(std::uint64_t number, FreightEnd& end) { carriages_[number] = &end; }
  void remove_landing(std::uint64_t number) noexcept { landings_.erase(number); }
  void remove_carriage(std::uint64_t number) noexcept { carriages_.erase(number); }
  Status tell(Peer& peer, const FreightNote& note, Bytes bytes = {}, Bytes more = {});
  // A refusal or an end, which the other end waits for. False: it could not be sent, for want of
  // memory, and has to be tried again.
  bool tell_error(Peer& peer, FreightNote::What what, std::uint64_t to, const Status& why);

  // Carriers that have come for landings of which nobody here knows. To be called once all that has
  // been asked of this process before is known.
  void refuse_strangers();
  bool has_strangers() const noexcept { return !strangers_.empty(); }

  // Page-locked memory of piece_bytes that the network knows, kept from message to message; none
  // where too much is in use.
  struct Room {
    device::DeviceRuntime* runtime = nullptr;
    device::StagingBuffer memory;
    std::unique_ptr<Region> region;
  };
  Status take_room(device::DeviceRuntime* runtime, std::unique_ptr<Room>& room);
  void give_back(std::unique_ptr<Room> room);
  // To carry a piece in; empty where too much is in use.
  Status take_chunk(device::DeviceRuntime* runtime, device::StagingBuffer& chunk);
  void give_back(device::StagingBuffer chunk) noexcept;

  // Until when what is under way may take to end where its owner cannot wait: one moment for all.
  std::chrono::steady_clock::time_point farewell();

 private:
  struct Stranger {
    FreightNote note;
    std::vector<std::byte> bytes;
  };
  void hear(Bytes message);

  Worker& worker_;
  const Bounds bounds_;
  const std::string name_;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, FreightEnd*> landings_;
  std::map<std::uint64_t, FreightEnd*> carriages_;
  std::vector<Stranger> strangers_;
  std::vector<std::unique_ptr<Room>> idle_;
  std::size_t rooms_ = 0;
  std::size_t chunks_ = 0;
  std::optional<std::chrono::steady_clock::time_point> farewell_;
};

// The name and the worker's address that come with a note of the kind `begin`.
struct Carrier {
  std::string name;
  Bytes worker;
};
Carrier carrier_of(const FreightNote& note, Bytes bytes);

inline std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace accord::net
