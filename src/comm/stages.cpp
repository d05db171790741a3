#include "comm/stages.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace soybean::comm {

namespace {

enum : std::uint8_t { inside, between, after };

std::byte* at(void* data, std::int64_t elements, DType type) {
  return data == nullptr ? nullptr : static_cast<std::byte*>(data) + elements * size_of(type);
}

} // namespace

void Stages::place(const Collective& collective, int rank, std::span<const int> hosts) {
  collective_ = &collective;
  rank_ = rank;
  hosts_ = hosts;
  if (collective.kind == Kind::exchange) {
    way_ = Way::exchange;
    return;
  }
  const std::vector<int>& group = collective.group;
  const auto me = std::find(group.begin(), group.end(), rank);
  if (me == group.end()) ensure(false, "this rank starts a collective of a group it is not in");
  group_hosts_.clear();
  members_on_.clear();
  for (int r : group) {
    const auto found = std::find(group_hosts_.begin(), group_hosts_.end(), hosts[r]);
    const auto h = static_cast<std::size_t>(found - group_hosts_.begin());
    if (found == group_hosts_.end()) {
      group_hosts_.push_back(hosts[r]);
      members_on_.push_back(0);
    }
    if (r == rank) {
      my_host_ = static_cast<int>(h);
      my_place_ = members_on_[h];
    }
    ++members_on_[h];
  }
  per_host_ = members_on_.front();
  const bool equal = std::count(members_on_.begin(), members_on_.end(), per_host_) == std::ssize(members_on_);
  if (members_on_.size() == 1)
    way_ = Way::inside;
  else if (!equal || per_host_ == 1)
    way_ = Way::between;
  else
    way_ = Way::split;
  members_.clear();
  if (way_ != Way::split) return;
  for (int host : group_hosts_)
    for (int i = 0; i < static_cast<int>(group.size()); ++i)
      if (hosts[group[i]] == host) members_.push_back(i);
}

bool Stages::in_classes() const {
  const int count = static_cast<int>(group_hosts_.size());
  for (int place = 0; place < per_host_; ++place)
    for (int host = 0; host < count; ++host)
      if (member(host, place) != place * count + host) return false;
  return true;
}

std::int64_t Stages::scratch_bytes() const {
  if (way_ != Way::split || collective_->kind != Kind::reduce_scatter || in_classes()) return 0;
  const std::vector<std::int64_t>& counts = collective_->counts;
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) * size_of(collective_->dtype);
}

void Stages::build(void* scratch) {
  copies_.clear();
  at_once_ = way_ == Way::exchange;
  for (int s = 0; s < count; ++s) {
    Collective& c = stages_[s];
    c.dtype = collective_->dtype;
    c.control = collective_->control;
    c.label = collective_->label;
    c.sends.clear();
    c.receives.clear();
    skip(s);
  }
  switch (way_) {
  case Way::inside:
    return whole(inside);
  case Way::between:
    whole(between);
    if (collective_->kind == Kind::all_reduce)
      std::sort(stages_[between].group.begin(), stages_[between].group.end(),
                [&](int a, int b) { return hosts_[a] != hosts_[b] ? hosts_[a] < hosts_[b] : a < b; });
    return;
  case Way::split:
    return collective_->kind == Kind::all_reduce ? split_all_reduce() : split_reduce_scatter(scratch);
  case Way::exchange:
    return split_exchange();
  }
}

void Stages::skip(int s) {
  Collective& c = stages_[s];
  c.kind = Kind::all_reduce;
  c.group.assign(1, rank_);
  c.counts.assign(1, 0);
  c.send = c.recv = nullptr;
}

void Stages::whole(int s) {
  stages_[s] = *collective_;
}

void Stages::split_all_reduce() {
  const Collective& c = *collective_;
  const std::int64_t n = c.counts.at(0), bytes = n * size_of(c.dtype);
  if (c.recv != c.send) copies_.push_back({c.recv, c.send, bytes});
  const auto chunk = [&](int place) { return n * place / per_host_; };
  const auto elements = [&](int place) { return chunk(place + 1) - chunk(place); };
  std::byte* const mine = at(c.recv, chunk(my_place_), c.dtype);

  Collective& first = stages_[inside];
  first.kind = Kind::reduce_scatter;
  first.group.clear();
  first.counts.clear();
  for (int place = 0; place < per_host_; ++place) {
    first.group.push_back(c.group[member(my_host_, place)]);
    first.counts.push_back(elements(place));
  }
  first.send = c.recv;
  first.recv = mine;

  Collective& second = stages_[between];
  second.group.clear();
  for (int host = 0; host < static_cast<int>(group_hosts_.size()); ++host)
    second.group.push_back(c.group[member(host, my_place_)]);
  second.counts.assign(1, elements(my_place_));
  second.send = second.recv = mine;

  Collective& third = stages_[after];
  third.kind = Kind::exchange;
  third.counts.clear();
  third.group.clear();
  for (int place = 0; place < per_host_; ++place) {
    if (place == my_place_) continue;
    third.sends.push_back({first.group[place], mine, elements(my_place_)});
    third.receives.push_back({first.group[place], at(c.recv, chunk(place), c.dtype), elements(place)});
  }
}

std::int64_t Stages::first_of(int member) const {
  const auto begin = collective_->counts.begin();
  return std::accumulate(begin, begin + member, std::int64_t{0});
}

void Stages::split_reduce_scatter(void* scratch) {
  const Collective& c = *collective_;
  if (c.counts.size() != c.group.size()) ensure(false, "reduce_scatter takes one count per member");
  const int hosts = static_cast<int>(group_hosts_.size());
  const bool ordered = in_classes();
  void* const terms = ordered ? c.send : scratch;
  Collective& first = stages_[inside];
  Collective& second = stages_[between];
  first.kind = second.kind = Kind::reduce_scatter;
  first.group.clear();
  first.counts.clear();
  second.group.clear();
  second.counts.clear();
  std::int64_t placed = 0;
  for (int place = 0; place < per_host_; ++place) {
    if (place == my_place_) first.recv = second.send = at(terms, placed, c.dtype);
    const std::int64_t begin = placed;
    for (int host = 0; host < hosts; ++host) {
      const int m = member(host, place);
      const std::int64_t bytes = c.counts[m] * size_of(c.dtype);
      if (!ordered && bytes > 0)
        copies_.push_back({at(terms, placed, c.dtype), at(c.send, first_of(m), c.dtype), bytes});
      placed += c.counts[m];
      if (place != my_place_) continue;
      second.group.push_back(c.group[m]);
      second.counts.push_back(c.counts[m]);
    }
    first.group.push_back(c.group[member(my_host_, place)]);
    first.counts.push_back(placed - begin);
  }
  first.send = terms;
  second.recv = c.recv;
}

void Stages::split_exchange() {
  for (int s : {inside, between}) {
    Collective& c = stages_[s];
    c.kind = Kind::exchange;
    c.group.clear();
    c.counts.clear();
    const auto belongs = [&](const Message& m) { return (hosts_[m.peer] == hosts_[rank_]) == (s == inside); };
    std::copy_if(collective_->sends.begin(), collective_->sends.end(), std::back_inserter(c.sends), belongs);
    std::copy_if(collective_->receives.begin(), collective_->receives.end(), std::back_inserter(c.receives), belongs);
  }
}

} // namespace soybean::comm
