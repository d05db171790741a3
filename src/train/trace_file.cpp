#include "train/trace_file.hpp"

#include "train/on_root.hpp"
#include "train/run_dir.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace soybean::train {

namespace {

using Json = nlohmann::ordered_json;
using Track = runtime::Trace::Track;

constexpr std::array<const char*, 4> track_names = {"computing", "waiting", "transfers", "host"};

void list(std::string& text, const Json& event) {
  if (!text.empty()) text += ",\n";
  text += event.dump();
}

std::string to_json(const runtime::Trace& trace, int rank) {
  std::string text;
  list(text,
       {{"ph", "M"}, {"name", "process_name"}, {"pid", rank}, {"args", {{"name", fmt::format("rank {}", rank)}}}});
  for (const Track track : {Track::computing, Track::waiting, Track::host})
    list(text, {{"ph", "M"},
                {"name", "thread_name"},
                {"pid", rank},
                {"tid", static_cast<int>(track)},
                {"args", {{"name", track_names[static_cast<std::size_t>(track)]}}}});
  std::int64_t transfers = 0;
  for (const runtime::Trace::Event& event : trace.events()) {
    const char* track = track_names[static_cast<std::size_t>(event.track)];
    Json json{{"ph", "X"},
              {"name", event.name},
              {"cat", track},
              {"pid", rank},
              {"tid", static_cast<int>(event.track)},
              {"ts", 1e6 * event.begin}};
    if (event.bytes > 0) json["args"] = {{"bytes", event.bytes}};
    if (event.track != Track::transfer) {
      json["dur"] = 1e6 * (event.end - event.begin);
      list(text, json);
      continue;
    }
    json["ph"] = "b";
    json["id"] = fmt::format("{}.{}", rank, transfers++);
    list(text, json);
    json["ph"] = "e";
    json["ts"] = 1e6 * event.end;
    list(text, json);
  }
  return text;
}

} // namespace

void write_trace(const runtime::Trace& trace, const std::string& path, comm::Comm& comm) {
  constexpr int size_tag = 1, text_tag = 2;
  const std::string mine = to_json(trace, comm.rank());
  if (comm.rank() != 0) {
    const auto bytes = static_cast<std::int64_t>(mine.size());
    comm.send(&bytes, sizeof bytes, 0, size_tag);
    comm.send(mine.data(), bytes, 0, text_tag);
  }
  std::string all = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + mine;
  for (int rank = 1; comm.rank() == 0 && rank < comm.size(); ++rank) {
    std::int64_t bytes = 0;
    comm.receive(&bytes, sizeof bytes, rank, size_tag);
    std::string text(static_cast<std::size_t>(bytes), ' ');
    comm.receive(text.data(), bytes, rank, text_tag);
    all += ",\n" + text;
  }
  on_root(comm, [&] { write_file(path, all + "\n]}\n"); });
}

} // namespace soybean::train
