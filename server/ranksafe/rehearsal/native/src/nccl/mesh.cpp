#include "mesh.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>

namespace ranksafe::nccl {

namespace {

constexpr auto kPause = std::chrono::milliseconds(2);
/// How long a poll may last before `closed_` and the deadline are looked at again, in milliseconds.
constexpr int kPollMilliseconds = 100;

#ifdef MSG_NOSIGNAL
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0; // macOS: SO_NOSIGPIPE is set on the socket
#endif

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {
    TORCH_CHECK(value >= 0, "cannot open a socket: ", std::strerror(errno));
    ::fcntl(value, F_SETFD, FD_CLOEXEC);
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int release() {
    const int value = value_;
    value_ = -1;
    return value;
  }

 private:
  int value_;
};

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void make_ready(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
#ifdef SO_NOSIGPIPE
  ::setsockopt(socket, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof(on));
#endif
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
}

/// What is still to be moved over one socket in one direction.
struct Segment {
  char* data;
  size_t left;
  std::function<void()> then;
};

struct Traffic {
  std::deque<Segment> out;
  std::deque<Segment> in;
  bool idle() const { return out.empty() && in.empty(); }
};

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

void send_some(int socket, int peer, std::deque<Segment>& segments) {
  while (!segments.empty()) {
    Segment& segment = segments.front();
    const ssize_t sent = ::send(socket, segment.data, segment.left, kSendFlags);
    if (sent < 0) {
      if (would_block(errno)) return;
      throw PeerLost(peer, std::strerror(errno));
    }
    segment.data += sent;
    segment.left -= static_cast<size_t>(sent);
    if (segment.left > 0) return;
    segments.pop_front();
  }
}

void receive_some(int socket, int peer, std::deque<Segment>& segments) {
  while (!segments.empty()) {
    Segment& segment = segments.front();
    const ssize_t received = ::recv(socket, segment.data, segment.left, 0);
    if (received == 0) throw PeerLost(peer, "Connection closed by peer");
    if (received < 0) {
      if (would_block(errno)) return;
      throw PeerLost(peer, std::strerror(errno));
    }
    segment.data += received;
    segment.left -= static_cast<size_t>(received);
    if (segment.left > 0) continue;
    const auto then = std::move(segment.then);
    segments.pop_front();
    if (then) then();
  }
}

void copy_to_self(std::deque<Segment>& out, std::deque<Segment>& in) {
  TORCH_CHECK(out.size() == in.size(), "a rank's messages to itself do not match");
  for (size_t index = 0; index < out.size(); ++index) {
    TORCH_CHECK(out[index].left == in[index].left, "a rank's messages to itself differ in size");
    if (out[index].data != in[index].data) std::memmove(in[index].data, out[index].data, out[index].left);
    if (in[index].then) in[index].then();
  }
}

} // namespace

PeerLost::PeerLost(int peer, const std::string& reason) : std::runtime_error(reason), peer(peer) {}
Expired::Expired() : std::runtime_error("timed out") {}
Closed::Closed() : std::runtime_error("the communicator was closed") {}

Mesh::Mesh(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size)
    : store_(std::move(store)), name_(std::move(name)), rank_(rank), size_(size) {}

Mesh::~Mesh() {
  for (const int socket : sockets_)
    if (socket >= 0) ::close(socket);
}

std::string Mesh::key(int rank) const {
  return name_ + "/" + std::to_string(rank);
}

void Mesh::check(Deadline deadline) const {
  if (closed_) throw Closed();
  if (Clock::now() > deadline) throw Expired();
}

void Mesh::connect(Deadline deadline) {
  if (connected_) return;
  sockets_.assign(static_cast<size_t>(size_), -1);
  Descriptor listener(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof(address);
  TORCH_CHECK(
      ::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 &&
          ::listen(listener.get(), size_) == 0 &&
          ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0,
      "cannot listen on the loopback interface: ", std::strerror(errno));
  const bool awaited = rank_ + 1 < size_;
  if (awaited) {
    const std::string port = std::to_string(ntohs(address.sin_port));
    store_->set(key(rank_), std::vector<uint8_t>(port.begin(), port.end()));
  }
  for (int peer = 0; peer < rank_; ++peer) connect_to(peer, deadline);
  accept_higher_ranks(listener.get(), deadline);
  // A group that is made again under the same name must not find this address.
  if (awaited) store_->deleteKey(key(rank_));
  connected_ = true;
}

void Mesh::connect_to(int peer, Deadline deadline) {
  // `get` would keep the store's only connection busy, and with it every other thread that needs the store.
  while (!store_->check({key(peer)})) {
    check(deadline);
    std::this_thread::sleep_for(kPause);
  }
  const auto port = store_->get(key(peer));
  const sockaddr_in address = loopback(static_cast<uint16_t>(std::stoi(std::string(port.begin(), port.end()))));
  Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    throw PeerLost(peer, std::strerror(errno));
  const int32_t mine = rank_;
  if (::send(socket.get(), &mine, sizeof(mine), kSendFlags) != sizeof(mine))
    throw PeerLost(peer, std::strerror(errno));
  make_ready(socket.get());
  sockets_[static_cast<size_t>(peer)] = socket.release();
}

void Mesh::accept_higher_ranks(int listener, Deadline deadline) {
  for (int missing = size_ - 1 - rank_; missing > 0; --missing) {
    pollfd waiting{listener, POLLIN, 0};
    while (::poll(&waiting, 1, kPollMilliseconds) <= 0) check(deadline);
    Descriptor socket(::accept(listener, nullptr, nullptr));
    int32_t peer = -1;
    if (::recv(socket.get(), &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer) || peer <= rank_ || peer >= size_)
      throw PeerLost(peer, "an unknown peer connected");
    make_ready(socket.get());
    sockets_[static_cast<size_t>(peer)] = socket.release();
  }
}

void Mesh::exchange(
    const std::vector<Outgoing>& outgoing,
    const std::vector<Incoming>& incoming,
    Deadline deadline) {
  connect(deadline);
  std::vector<Traffic> traffic(static_cast<size_t>(size_));
  for (const Outgoing& message : outgoing)
    if (message.bytes > 0)
      traffic.at(static_cast<size_t>(message.peer))
          .out.push_back({static_cast<char*>(const_cast<void*>(message.data)), message.bytes, {}});
  for (const Incoming& message : incoming)
    if (message.bytes > 0)
      traffic.at(static_cast<size_t>(message.peer))
          .in.push_back({static_cast<char*>(message.data), message.bytes, message.then});
  Traffic& own = traffic[static_cast<size_t>(rank_)];
  copy_to_self(own.out, own.in);
  own = {};

  std::vector<pollfd> waiting;
  std::vector<int> peers;
  while (true) {
    waiting.clear();
    peers.clear();
    for (int peer = 0; peer < size_; ++peer) {
      const Traffic& pending = traffic[static_cast<size_t>(peer)];
      if (pending.idle()) continue;
      const int events = (pending.in.empty() ? 0 : POLLIN) | (pending.out.empty() ? 0 : POLLOUT);
      waiting.push_back({sockets_[static_cast<size_t>(peer)], static_cast<short>(events), 0});
      peers.push_back(peer);
    }
    if (waiting.empty()) return;
    check(deadline);
    if (::poll(waiting.data(), static_cast<nfds_t>(waiting.size()), kPollMilliseconds) <= 0) continue;
    for (size_t index = 0; index < waiting.size(); ++index) {
      const short ready = waiting[index].revents;
      if (ready == 0) continue;
      Traffic& pending = traffic[static_cast<size_t>(peers[index])];
      // Receiving first: a peer that sent its last bytes and ended is no loss.
      if (ready & (POLLIN | POLLHUP | POLLERR)) receive_some(waiting[index].fd, peers[index], pending.in);
      if (ready & (POLLOUT | POLLHUP | POLLERR)) send_some(waiting[index].fd, peers[index], pending.out);
    }
  }
}

void Mesh::close() noexcept {
  closed_ = true;
}

} // namespace ranksafe::nccl
