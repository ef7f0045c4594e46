// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "net/active.h"

#include <fmt/format.h>

#include <cstring>

namespace accord::net {
namespace {

// What the receiver tells; how that worker is reached and whose it is follow. The sender's answer
// is empty: it cannot go there, if that is a place at all.
struct Place {
  std::uint64_t landing = 0;  // 0: it is not known yet
  std::uint32_t worker_bytes = 0;
  std::uint32_t name_bytes = 0;
};

Status the_other_gave_up(const char* who) {
  return {StatusCode::network, fmt::format("active proxy: the {} has given up", who)};
}

}  // namespace

ActiveReceive::~ActiveReceive() {
  if (number_ != 0) port_->drop(number_);
}

Status ActiveReceive::begin(std::vector<std::byte>& ask) {
  ACCORD_TRY(choose());
  ask = place();
  if (ask.size() <= Line::kTellBytesMax) return {};
  return {StatusCode::network, "active proxy: the receiver's address is too long"};
}

// Here, too, where the proxy is yet to come, or is too busy: nobody waits for it.
Status ActiveReceive::choose() {
  if (port_ == nullptr || !is_for_proxy(to_.where)) return land_here();
  const Status asked = port_->land(to_, number_, landing_at_);
  if (!asked.ok() && asked.code() != StatusCode::unsupported) return asked;
  return number_ == 0 ? land_here() : Status();
}

Status ActiveReceive::land_here() {
  landing_at_ = line_.freight.next_number();
  here_.emplace(line_.freight, landing_at_, to_,
                line_.worker.reaches(to_.where) ? Landing::Way::straight : Landing::Way::by_pieces);
  return {};
}

std::vector<std::byte> ActiveReceive::place() const {
  const bool is_at_proxy = number_ != 0;
  const std::string name =
      is_at_proxy ? "the proxy of node " + port_->node() : line_.freight.name();
  const Bytes worker = is_at_proxy ? port_->holder() : line_.worker.address();
  const Place where{.landing = landing_at_,
                    .worker_bytes = static_cast<std::uint32_t>(worker.size()),
                    .name_bytes = static_cast<std::uint32_t>(name.size())};
  std::vector<std::byte> told;
  for (const Bytes part : {std::as_bytes(std::span(&where, 1)), worker, bytes_of(name)})
    told.insert(told.end(), part.begin(), part.end());
  return told;
}

Status ActiveReceive::answer() {
  if (landing_at_ == 0) ACCORD_TRY(choose());
  if (landing_at_ == 0) return {};
  is_asked_ = false;
  return line_.tell(place());
}

// Where it cannot open the memory nothing has come there.
Status ActiveReceive::await_proxy(bool& done) {
  const Status status = port_->poll(number_, done);
  if (!done) return {};
  number_ = 0;
  if (is_stopped_ && !status.ok()) return the_other_gave_up("sender");
  if (status.ok() || (status.code() != StatusCode::unsupported && !is_asked_)) return status;
  done = false;
  landing_at_ = 0;
  port_ = nullptr;
  return {};
}

Status ActiveReceive::advance(bool& done) {
  done = false;
  if (here_) return is_asked_ && !is_stopped_ ? answer() : here_->advance(done);
  if (number_ != 0) return await_proxy(done);
  if (is_stopped_) return the_other_gave_up("sender");
  return is_asked_ ? answer() : Status();
}

void ActiveReceive::hear(Bytes) {
  if (number_ != 0 && !is_asked_) port_->drop(number_);
  is_asked_ = true;
}

void ActiveReceive::stop() noexcept {
  if (here_) here_->stop();
  if (number_ != 0 && !is_stopped_) port_->drop(number_);
  is_stopped_ = true;
}

// All else comes by the network, or by the proxy's socket.
bool ActiveReceive::must_be_polled() const noexcept {
  return here_ ? here_->must_be_polled() : is_asked_ && number_ == 0;
}

ActiveSend::~ActiveSend() {
  if (number_ != 0) port_->drop(number_);
}

Status ActiveSend::understand(Bytes place) {
  Place where;
  if (place.size() >= sizeof where) std::memcpy(&where, place.data(), sizeof where);
  if (place.size() != sizeof where + std::size_t{where.worker_bytes} + where.name_bytes)
    return {StatusCode::network, "active proxy: a place that is not understood"};
  // Nobody reaches a proxy without UCX.
  if (where.landing == 0 || where.worker_bytes == 0) return ask_for_another();
  const Bytes worker = place.subspan(sizeof where, where.worker_bytes);
  target_ = {.worker = {worker.begin(), worker.end()},
             .landing = where.landing,
             .name = text_of(place.subspan(sizeof where + worker.size()))};
  return {};
}

Status ActiveSend::ask_for_another() {
  target_.reset();
  return line_.tell({});
}

void ActiveSend::begin_here() {
  const bool is_on_host = !device::needs_staging(from_.where);
  Freight& freight = is_on_host ? line_.host_freight() : line_.freight;
  const bool is_reached = freight.worker().reaches(from_.where);
  here_.emplace(freight, from_, *target_,
                is_reached ? Carriage::Way::straight : Carriage::Way::by_chunks);
}

Status ActiveSend::begin() {
  Status begun(StatusCode::unsupported, "");
  if (port_ != nullptr && is_for_proxy(from_.where))
    begun = port_->carry(
        from_, {.worker = target_->worker, .landing = target_->landing, .name = target_->name},
        number_);
  if (begun.code() != StatusCode::unsupported) return begun;
  begin_here();
  return {};
}

// What no proxy can open its own process carries.
Status ActiveSend::await_proxy(bool& done) {
  const Status status = port_->poll(number_, done);
  if (!done) return {};
  number_ = 0;
  if (is_stopped_ && !status.ok()) return the_other_gave_up("receiver");
  if (status.code() != StatusCode::unsupported) return status;
  done = false;
  port_ = nullptr;
  return {};
}

Status ActiveSend::carry_here(bool& done) {
  const Status status = here_->advance(done);
  if (status.code() != StatusCode::unsupported || was_declined_ || is_stopped_) return status;
  was_declined_ = true;
  done = false;
  here_.reset();
  return ask_for_another();
}

Status ActiveSend::advance(bool& done) {
  done = false;
  if (here_) return carry_here(done);
  if (number_ != 0) return await_proxy(done);
  if (is_stopped_) return the_other_gave_up("receiver");
  ACCORD_TRY(heard_);
  if (target_) ACCORD_TRY(begin());
  return here_ ? carry_here(done) : Status();
}

void ActiveSend::stop() noexcept {
  if (here_) here_->stop();
  if (number_ != 0 && !is_stopped_) port_->drop(number_);
  is_stopped_ = true;
}

// Until the proxy has it. All else comes by the network, or by the proxy's socket.
bool ActiveSend::must_be_polled() const noexcept {
  return here_ ? here_->must_be_polled() : target_ && number_ == 0;
}

bool ActiveDesign::is_ready(const device::PointerInfo& where) const {
  return !is_for_proxy(where) || (proxy_port() != nullptr &&
                                  proxy_port()->has(ProxyPort::Service::carrying, where.runtime));
}

Status ActiveDesign::receive(const Line& line, const Memory& to, std::vector<std::byte>& ask,
                             std::unique_ptr<Transfer>& made) const {
  auto transfer = std::make_unique<ActiveReceive>(line, to, landing_port());
  ACCORD_TRY(transfer->begin(ask));
  made = std::move(transfer);
  return {};
}

Status ActiveDesign::send(const Line& line, const Memory& from, Bytes ask,
                          std::unique_ptr<Transfer>& made) const {
  auto transfer = std::make_unique<ActiveSend>(line, from, proxy_port());
  ACCORD_TRY(transfer->understand(ask));
  made = std::move(transfer);
  return {};
}

}  // namespace accord::net
