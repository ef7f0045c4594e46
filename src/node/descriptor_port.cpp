// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Accord authors
#include "node/descriptor_port.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>

namespace accord::node {
namespace {

// Parcels taken from a socket at once, so that a flood of them holds nobody up.
constexpr int kParcelsPerPass = 256;
// Passes that somebody makes who must have what has come. A socket holds fewer parcels than they
// take, unless they keep coming.
constexpr int kPassesMax = 64;

// Of sockets that are reached by a path.
constexpr const char* kDirectoryPrefix = "accord-";
constexpr const char* kSocketName = "/socket";

struct Parcel {
  static constexpr std::uint64_t kMagic = 0x31647063'64726361ULL;
  std::uint64_t magic = kMagic;
  std::uint64_t port = 0;
  ParcelLabel label;
};

struct Arrived {
  ParcelLabel label;
  std::vector<Descriptor> descriptors;
};

// The socket of this process, and what has come for its ports. Never destroyed: groups may outlive
// static objects.
struct Ports {
  std::mutex mutex;  // guards what follows
  pid_t owner = 0;   // the process that made the socket: a fork has its own
  std::uint64_t process = 0;
  Descriptor socket;
  std::map<std::uint64_t, std::vector<Arrived>> arrived;  // by port
};

Ports& ports() {
  static Ports& instance = *new Ports;
  return instance;
}

Status from_errno(const char* what) {
  return {StatusCode::unsupported, fmt::format("node: {}: {}", what, std::strerror(errno))};
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) return 0;
  return number;
}

struct SocketName {
  sockaddr_un address{};
  socklen_t size_bytes = 0;
};

SocketName abstract_name(std::uint64_t process) {
  SocketName name;
  name.address.sun_family = AF_UNIX;
  const std::string text = fmt::format("accord-{:016x}", process);
  std::memcpy(name.address.sun_path + 1, text.data(), text.size());
  name.size_bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

std::string private_directory(const std::string& parent, const PortAddress& address) {
  return fmt::format("{}/{}{:016x}{:016x}", parent, kDirectoryPrefix, address.process,
                     address.port);
}

std::string socket_path(const std::string& parent, const PortAddress& address) {
  return private_directory(parent, address) + kSocketName;
}

bool path_name(const std::string& path, SocketName& name) {
  if (path.size() >= sizeof name.address.sun_path) return false;
  name.address.sun_family = AF_UNIX;
  std::memcpy(name.address.sun_path, path.data(), path.size());
  name.size_bytes = sizeof name.address;
  return true;
}

// Whether no process has the socket of this path; also where there is none.
bool is_deserted(const std::string& path) {
  SocketName name;
  const Descriptor any(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!any.is_open() || !path_name(path, name)) return false;
  return ::connect(any.number(), reinterpret_cast<const sockaddr*>(&name.address),
                   name.size_bytes) != 0 &&
         (errno == ECONNREFUSED || errno == ENOENT);
}

// What processes of this user have left that were killed while they joined: directories too old for
// their socket still to be made, and deserted.
void remove_left_behind(const std::string& parent) {
  constexpr std::time_t kYoungSeconds = 60;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    struct stat of {};
    if (!entry->path().filename().string().starts_with(kDirectoryPrefix)) continue;
    if (::lstat(path.c_str(), &of) != 0 || !S_ISDIR(of.st_mode) || of.st_uid != ::geteuid())
      continue;
    if (of.st_mtime + kYoungSeconds > std::time(nullptr) || !is_deserted(path + kSocketName))
      continue;
    ::unlink((path + kSocketName).c_str());
    ::rmdir(path.c_str());
  }
}

// The kernel is to say of every parcel who sent it.
Status make_socket(const SocketName& name, Descriptor& made) {
  Descriptor fresh(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fresh.is_open()) return from_errno("socket");
  const int on = 1;
  if (::setsockopt(fresh.number(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return from_errno("SO_PASSCRED");
  if (::bind(fresh.number(), reinterpret_cast<const sockaddr*>(&name.address), name.size_bytes) !=
      0)
    return from_errno("bind");
  made = std::move(fresh);
  return {};
}

// Who sent a message and which descriptors came with it, whatever else is wrong with it.
bool open_envelope(msghdr& message, std::vector<Descriptor>& descriptors) {
  bool is_ours = false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred sender{};
      std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
      is_ours = sender.uid == ::getuid();
    }
    if (header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof number, sizeof number);
      descriptors.emplace_back(number);
    }
  }
  return is_ours && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
}

// Whether there may be more. The caller holds the mutex. What is for nobody here is closed at once.
bool receive_from(Ports& all, int socket) {
  for (int parcels = 0; parcels < kParcelsPerPass; ++parcels) {
    Parcel parcel;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred)) +
                                  CMSG_SPACE(DescriptorPort::kDescriptorsMax * sizeof(int))] = {};
    iovec part{&parcel, sizeof parcel};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t length = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0) return false;
    std::vector<Descriptor> descriptors;
    const bool is_ours = open_envelope(message, descriptors);
    const auto bag = all.arrived.find(parcel.port);
    if (!is_ours || length != sizeof parcel || parcel.magic != Parcel::kMagic ||
        bag == all.arrived.end())
      continue;
    std::erase_if(bag->second, [&](const Arrived& old) {
      return old.label.from == parcel.label.from && old.label.item == parcel.label.item;
    });
    bag->second.push_back({parcel.label, std::move(descriptors)});
  }
  return true;
}

ssize_t send_parcel(int socket, const SocketName& to, Parcel& parcel,
                    std::span<const int> descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(DescriptorPort::kDescriptorsMax * sizeof(int))] = {};
  SocketName name = to;
  iovec part{&parcel, sizeof parcel};
  msghdr message{};
  message.msg_name = &name.address;
  message.msg_namelen = name.size_bytes;
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  return ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Whether the receiver has to take what it has before there is room; also where this user has too
// many descriptors under way.
bool is_full(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ETOOMANYREFS;
}

}  // namespace

DescriptorPort::DescriptorPort() = default;

DescriptorPort::~DescriptorPort() {
  close_path();
  const std::lock_guard lock(ports().mutex);
  ports().arrived.erase(address_.port);
}

Status DescriptorPort::open() {
  Ports& all = ports();
  const std::lock_guard lock(all.mutex);
  if (all.owner != ::getpid()) {
    all.process = random_number();
    ACCORD_TRY(make_socket(abstract_name(all.process), all.socket));
    all.owner = ::getpid();
  }
  address_ = {all.process, random_number()};
  if (!all.arrived.try_emplace(address_.port).second)
    return {StatusCode::unsupported, "node: no random numbers"};
  return {};
}

std::uint64_t DescriptorPort::network() {
#ifdef SO_NETNS_COOKIE
  const Descriptor any(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!any.is_open()) return 0;  // the other number would differ from those of ranks that have one
  std::uint64_t cookie = 0;
  socklen_t size_bytes = sizeof cookie;
  if (::getsockopt(any.number(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size_bytes) == 0)
    return cookie;
#endif
  struct stat of {};
  return ::stat("/proc/self/ns/net", &of) == 0 ? of.st_ino : 0;
}

Status DescriptorPort::open_path(const std::string& directory) {
  directory_ = directory;
  const std::string own = private_directory(directory, address_);
  SocketName name;
  if (!path_name(socket_path(directory, address_), name))
    return {StatusCode::unsupported, fmt::format("node: {} is too long for a socket", directory)};
  remove_left_behind(directory);
  if (::mkdir(own.c_str(), S_IRWXU) != 0) return from_errno(own.c_str());
  path_ = Path::open;
  return make_socket(name, path_socket_);
}

void DescriptorPort::close_path() noexcept {
  if (path_ != Path::open) return;
  receive();
  path_ = Path::closed;
  path_socket_.close();
  ::unlink(socket_path(directory_, address_).c_str());
  ::rmdir(private_directory(directory_, address_).c_str());
}

Status DescriptorPort::send(const PortAddress& to, const ParcelLabel& label,
                            std::span<const int> descriptors, bool& sent) {
  sent = false;
  if (descriptors.empty() || descriptors.size() > kDescriptorsMax)
    return {StatusCode::invalid_argument, "node: a parcel of no or too many descriptors"};
  if (path_ == Path::closed)
    return {StatusCode::unsupported, "node: the ranks are in different network namespaces"};
  SocketName name = abstract_name(to.process);
  if (path_ == Path::open && !path_name(socket_path(directory_, to), name))
    return {StatusCode::unsupported, "node: a path too long for a socket"};
  Parcel parcel;
  parcel.port = to.port;
  parcel.label = label;
  for (int attempt = 0; attempt < 2 && !sent; ++attempt) {
    // Room in the own socket, in case that is the receiver's too, or the receiver waits for it.
    if (attempt > 0) receive();
    const std::lock_guard lock(ports().mutex);
    sent = send_parcel(ports().socket.number(), name, parcel, descriptors) >= 0;
    const int error = sent ? 0 : errno;
    const bool not_yet = path_ == Path::open && (error == ENOENT || error == ECONNREFUSED);
    if (!sent && !is_full(error) && !not_yet) return from_errno("sending descriptors");
  }
  return {};
}

void DescriptorPort::receive() { (void)receive_some(); }

bool DescriptorPort::receive_some() {
  const std::lock_guard lock(ports().mutex);
  bool more = receive_from(ports(), ports().socket.number());
  if (path_socket_.is_open()) more = receive_from(ports(), path_socket_.number()) || more;
  return more;
}

void DescriptorPort::receive_all() {
  for (int pass = 0; pass < kPassesMax && receive_some(); ++pass) {
  }
}

void DescriptorPort::drop(const ParcelLabel& last) {
  receive_all();
  const std::lock_guard lock(ports().mutex);
  const auto bag = ports().arrived.find(address_.port);
  if (bag == ports().arrived.end()) return;
  std::erase_if(bag->second, [&](const Arrived& one) {
    return one.label.from == last.from && one.label.item == last.item &&
           one.label.generation <= last.generation;
  });
}

bool DescriptorPort::take(const ParcelLabel& label, std::vector<Descriptor>& descriptors) {
  receive_all();
  const std::lock_guard lock(ports().mutex);
  const auto bag = ports().arrived.find(address_.port);
  if (bag == ports().arrived.end()) return false;
  const auto found = std::ranges::find_if(bag->second, [&](const Arrived& one) {
    return one.label.from == label.from && one.label.item == label.item &&
           one.label.generation == label.generation;
  });
  if (found == bag->second.end()) return false;
  descriptors = std::move(found->descriptors);
  bag->second.erase(found);
  return true;
}

}  // namespace accord::node
