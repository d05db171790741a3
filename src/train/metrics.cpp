#include "train/metrics.hpp"

#include "base/error.hpp"

#include <nlohmann/json.hpp>

#include <limits>

namespace soybean::train {

using Json = nlohmann::ordered_json;

MetricsFile::MetricsFile(const std::string& path) : path_(path), file_(path, std::ios::app) {
  if (!file_) fail_running("{}: can not be opened for writing", path);
}

void MetricsFile::write_line(const std::string& line) {
  file_ << line << '\n';
  file_.flush();
  if (!file_) fail_running("{}: can not be written. is the disk full?", path_);
}

namespace {

using Named = std::vector<std::pair<std::string, double>>;

void add(Json& json, const Named& values) {
  for (const auto& [name, value] : values) json[name] = value;
}

Json validation(const Validation& v) {
  Json json{{"loss", v.loss}, {"accuracy", v.accuracy}};
  add(json, v.more);
  return json;
}

} // namespace

void MetricsFile::write(const StepRecord& r) {
  Json json{{"step", r.step}, {"epoch", r.epoch}, {"loss", r.loss}, {"accuracy", r.accuracy}};
  add(json, r.more);
  if (!r.losses.empty()) add(json["losses"], r.losses);
  json.update(Json{{"learning_rate", r.learning_rate},
                   {"samples_per_second", r.samples_per_second},
                   {"bytes_planned", r.bytes_planned},
                   {"bytes_moved", r.bytes_moved},
                   {"control_bytes", r.control_bytes},
                   {"seconds", r.seconds},
                   {"computing_seconds", r.computing_seconds},
                   {"waiting_seconds", r.waiting_seconds},
                   {"reading_seconds", r.reading_seconds},
                   {"peak_memory", r.peak_memory}});
  if (r.gradient_norm) json["gradient_norm"] = *r.gradient_norm;
  write_line(json.dump());
}

void MetricsFile::write(std::int64_t step, const Validation& v) {
  write_line(Json{{"step", step}, {"validation", validation(v)}}.dump());
}

bool Best::take(std::int64_t done, const Validation& v, const std::string& by) {
  const bool better = step < 0 || (by == "accuracy" ? v.accuracy > validation.accuracy : v.loss < validation.loss);
  if (better)
    *this = {done, v, 0};
  else
    ++since;
  return better;
}

std::string to_json(const Best& b) {
  return Json{{"step", b.step}, {"loss", b.validation.loss}, {"accuracy", b.validation.accuracy}, {"since", b.since}}
      .dump();
}

Best best_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const Json& accuracy = json.at("accuracy");
    const double none = std::numeric_limits<double>::quiet_NaN();
    return {json.at("step"), {json.at("loss"), accuracy.is_null() ? none : accuracy.get<double>()}, json.at("since")};
  } catch (const Json::exception& error) {
    fail("the best validation, got '{}' expected one written by soybean_train ({})", text, error.what());
  }
}

std::string to_json(const Evaluation& e) {
  const Json json{{"checkpoint", e.checkpoint},
                  {"steps", e.step},
                  {"validation", validation(e.validation)},
                  {"validation_samples", e.samples},
                  {"samples_per_second", static_cast<double>(e.samples) / e.seconds},
                  {"ranks", e.ranks},
                  {"strategy", e.strategy}};
  return json.dump(2) + "\n";
}

std::string to_json(const Summary& s) {
  Json json{
      {"steps", s.steps}, {"stopped_early", s.stopped_early}, {"final_loss", s.final_loss}, {"validation", nullptr}};
  if (s.validation) json["validation"] = validation(*s.validation);
  if (s.best) {
    json["best"] = {{"step", s.best->step}};
    json["best"].update(validation(s.best->validation));
  }
  json["samples_per_second"] = s.samples_per_second;
  json["bytes_planned_per_step"] = s.bytes_planned_per_step;
  json["bytes_moved_per_step"] = s.bytes_moved_per_step;
  json["peak_memory"] = s.peak_memory;
  json["ranks"] = s.ranks;
  json["strategy"] = s.strategy;
  json["microbatches"] = s.microbatches;
  json["recompute"] = s.recompute;
  return json.dump(2) + "\n";
}

} // namespace soybean::train
