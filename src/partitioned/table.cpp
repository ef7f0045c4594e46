// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "partitioned/table.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "node/node_number.h"
#include "partitioned/collective.h"
#include "partitioned/receive.h"
#include "partitioned/send.h"

namespace accord::partitioned {
namespace {

template <class Record>
bool read(std::span<const std::byte> body, Record& record) {
  if (body.size() != sizeof record) return false;
  std::memcpy(&record, body.data(), sizeof record);
  return true;
}

// ACCORD_TEST_PARTITIONED: "messages" as where the ranks share no node, "decline" as where senders
// cannot map what receivers share.
bool test_asks_for(std::string_view what) {
  const char* const text = std::getenv("ACCORD_TEST_PARTITIONED");
  return text != nullptr && what == text;
}

}  // namespace

PartitionedTable::PartitionedTable(MessagePort& messages, core::HostPort& host, int own_process)
    : own_process_(own_process),
      channel_(messages, host),
      has_port_(!test_asks_for("messages") && port_.open().ok()),
      declines_(test_asks_for("decline")),
      node_(node::node_number()),
      network_(node::DescriptorPort::network()) {}

std::uint32_t PartitionedTable::enter(Partitioned& request) {
  while (++last_number_ == 0 || requests_.contains(last_number_)) {
  }
  requests_[last_number_] = &request;
  return last_number_;
}

void PartitionedTable::leave(const Partitioned& request, const Envelope& envelope) {
  requests_.erase(request.number());
  const auto waiting = waiting_.find(key_of(envelope));
  if (waiting != waiting_.end()) {
    std::ranges::replace_if(
        waiting->second, [&](const Partitioned* one) { return one == &request; }, nullptr);
  }
  forget_prequests_of(request);
}

void PartitionedTable::expect(PartitionedReceive& request, const Envelope& envelope) {
  const auto hellos = hellos_.find(key_of(envelope));
  if (hellos == hellos_.end()) {
    waiting_[key_of(envelope)].push_back(&request);
    return;
  }
  const wire::Hello hello = hellos->second.front();
  hellos->second.pop_front();
  if (hellos->second.empty()) hellos_.erase(hellos);
  request.meet(hello);
}

void PartitionedTable::meet(int process, const wire::Hello& hello) {
  const Key key = key_of({process, hello.lineage, hello.tag});
  const auto waiting = waiting_.find(key);
  if (waiting == waiting_.end()) {
    hellos_[key].push_back(hello);
    return;
  }
  PartitionedReceive* const request = waiting->second.front();
  waiting->second.pop_front();
  if (waiting->second.empty()) waiting_.erase(waiting);
  if (request != nullptr) request->meet(hello);
}

CollectiveName PartitionedTable::next_collective(std::uint64_t lineage) {
  return {lineage, ++collectives_made_[lineage]};
}

void PartitionedTable::enter(PartitionedCollective& request) {
  collectives_[request.name()] = &request;
  const auto early = early_.find(request.name());
  if (early == early_.end()) return;
  for (const Early& one : early->second) request.note(one.process, one.header, one.body);
  early_.erase(early);
}

void PartitionedTable::leave(const PartitionedCollective& request) {
  collectives_.erase(request.name());
  forget_prequests_of(request);
}

Status PartitionedTable::poll() {
  return channel_.poll([this](int process, const wire::Header& header,
                              std::span<const std::byte> body, PartitionedChannel::Letter& letter) {
    return deliver(process, header, body, letter);
  });
}

Status PartitionedTable::pages_of(int process, std::uint32_t number,
                                  const node::Descriptor* descriptor,
                                  std::shared_ptr<node::SharedPages>& pages) {
  auto& known = pages_[{process, number}];
  if (known == nullptr) {
    if (descriptor == nullptr)
      return {StatusCode::unsupported, "partitioned: the receiver's pages are not known here"};
    auto mapped = std::make_shared<node::SharedPages>();
    ACCORD_TRY(mapped->map(*descriptor));
    known = std::move(mapped);
  }
  pages = known;
  return {};
}

// A sender that has been freed sends nothing any more, and does not look at the board.
Status PartitionedTable::answer_for_nobody(int process, const wire::Header& header,
                                           std::span<const std::byte> body) {
  wire::Welcome welcome;
  if (header.kind != wire::Kind::welcome || !read(body, welcome)) return {};
  ACCORD_TRY(channel_.post(process, {.kind = wire::Kind::decline, .to = welcome.receiver}));
  return channel_.post(process,
                       {.kind = wire::Kind::failed, .to = welcome.receiver, .round = header.round});
}

// What is for a request that has been freed is for nobody, and an error is that request's own,
// whichever one has looked for messages.
Status PartitionedTable::deliver(int process, const wire::Header& header,
                                 std::span<const std::byte> body,
                                 PartitionedChannel::Letter& letter) {
  if (closed_) return {};
  if (header.kind == wire::Kind::hello) {
    wire::Hello hello;
    if (read(body, hello)) meet(process, hello);
    return {};
  }
  if (header.kind >= wire::Kind::collective_ready) {
    deliver_to_collective(process, header, body, letter);
    return {};
  }
  const auto found = requests_.find(header.to);
  if (found == requests_.end()) return answer_for_nobody(process, header, body);
  if (header.kind == wire::Kind::failed) found->second->note_failure_of_peer(header.round);
  if (auto* const send = dynamic_cast<PartitionedSend*>(found->second)) {
    wire::Welcome welcome;
    if (header.kind == wire::Kind::ready) send->note_ready(header.round);
    if (header.kind == wire::Kind::welcome && read(body, welcome))
      send->fail_on_error(send->welcomed(welcome, header.round));
    return {};
  }
  auto& receive = static_cast<PartitionedReceive&>(*found->second);
  if (header.kind == wire::Kind::decline) receive.fail_on_error(receive.declined());
  if (header.kind == wire::Kind::data) receive.fail_on_error(receive.take(header, body, letter));
  return {};
}

void PartitionedTable::keep_until_parted(const CollectiveName& name, std::set<int> writers,
                                         core::DeviceScrap words) {
  if (!writers.empty()) parting_[name] = {std::move(writers), std::move(words)};
}

void PartitionedTable::note_parted(int process, const CollectiveName& name) {
  const auto found = parting_.find(name);
  if (found == parting_.end()) return;
  found->second.writers.erase(process);
  if (found->second.writers.empty()) parting_.erase(found);
}

void PartitionedTable::deliver_to_collective(int process, const wire::Header& header,
                                             std::span<const std::byte> body,
                                             PartitionedChannel::Letter& letter) {
  const CollectiveName name{header.lineage, header.to};
  const bool is_data = header.kind == wire::Kind::collective_data;
  const auto found = collectives_.find(name);
  if (found == collectives_.end()) {
    if (header.kind == wire::Kind::node_part) note_parted(process, name);
    if (!is_data && name.number > collectives_made_[name.lineage])
      early_[name].push_back({process, header, {body.begin(), body.end()}});
    return;
  }
  if (is_data) {
    found->second->take(process, header, body, letter);
  } else {
    found->second->note(process, header, body);
  }
}

void PartitionedTable::note_moved(const Moved& round) {
  moved_.kernel += round.kernel;
  moved_.engine += round.engine;
  moved_.messages += round.messages;
}

void PartitionedTable::report() {
  const std::lock_guard<std::mutex> locked(mutex_);
  log::info("partitioned: {} transfers by kernels, {} by copy engines, {} by messages",
            moved_.kernel, moved_.engine, moved_.messages);
}

void PartitionedTable::note_prequest(const void* prequest, Partitioned* request) {
  if (request == nullptr) {
    prequests_.erase(prequest);
  } else {
    prequests_[prequest] = request;
  }
  channel_.let_kernels_run(!prequests_.empty());
}

void PartitionedTable::forget_prequests_of(const Partitioned& request) {
  std::erase_if(prequests_, [&](const auto& entry) { return entry.second == &request; });
  channel_.let_kernels_run(!prequests_.empty());
}

Partitioned* PartitionedTable::owner_of(const void* prequest) {
  const auto found = prequests_.find(prequest);
  return found == prequests_.end() ? nullptr : found->second;
}

}  // namespace accord::partitioned
