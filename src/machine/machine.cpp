#include "machine/machine.hpp"

#include "base/error.hpp"
#include "config/table.hpp"
#include "ops/operator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

namespace soybean::machine {
namespace {

constexpr double rounding = 1e-4; ///< of numbers written by machine_text
constexpr std::array<Precision, precisions> all_precisions{Precision::fp64, Precision::fp32, Precision::tf32};

double at_least(const config::Table& table, std::string_view key, std::optional<double> fallback, double low) {
  const double value = table.real(key, fallback);
  if (!(value >= low)) table.reject(key, fmt::format("a number of at least {:g}", low));
  return value;
}

double positive(const config::Table& table, std::string_view key, std::string_view unit) {
  const double value = table.real(key, config::required);
  if (!(value > 0)) table.reject(key, fmt::format("a number above 0, in {}", unit));
  return value;
}

/// The keys of a table, all operators.
std::vector<std::string> operators_in(const config::Table& table) {
  for (const std::string& op : table.keys()) {
    if (!ops::exists(op)) {
      std::vector<std::string> known;
      for (const ops::Operator& row : ops::table()) known.emplace_back(row.name);
      const std::string meant = config::nearest(op, known);
      table.reject(op, "an operator's name as key",
                   meant.empty() ? "src/ops/README.md lists them" : fmt::format("did you mean {}?", meant));
    }
  }
  return table.keys();
}

Curve read_curve(const config::Table& table, const std::string& op, std::string_view unit) {
  if (!table.has_list(op)) return {{1, positive(table, op, unit)}};
  const std::vector<double> numbers = table.reals(op, config::required);
  Curve curve;
  bool good = !numbers.empty() && numbers.size() % 2 == 0;
  for (std::size_t i = 0; good && i < numbers.size(); i += 2) {
    const Point point{numbers[i], numbers[i + 1]};
    good = point.size > 0 && point.rate > 0;
    if (good && !curve.empty()) {
      const Point& before = curve.back();
      good = point.size > before.size && point.rate / before.rate <= point.size / before.size * (1 + rounding);
    }
    curve.push_back(point);
  }
  if (!good)
    table.reject(op, "a rate, or size and rate in turn, by ascending sizes",
                 "rates may grow no faster than sizes, else more work would take less time");
  return curve;
}

ByOperator read_by_operator(const config::Table& table, std::string_view unit) {
  ByOperator curves;
  for (const std::string& op : operators_in(table)) curves[op] = read_curve(table, op, unit);
  return curves;
}

void check_below_peak(const config::Table& table, std::string_view key, double rate, double peak) {
  if (rate > peak * (1 + rounding))
    table.reject(key, fmt::format("at most the peak, {:g}", peak), "no kernel is faster than that");
}

Rates read_rates(const config::Table& table) {
  constexpr std::string_view unit = "flop/s";
  table.known({"peak", "products", "convolutions", "arithmetic", "half", "operators"});
  Rates rates;
  rates.peak = positive(table, "peak", unit);
  rates.products = positive(table, "products", unit);
  rates.convolutions = positive(table, "convolutions", unit);
  rates.arithmetic = positive(table, "arithmetic", unit);
  rates.half = at_least(table, "half", 0, 0);
  const config::Table own = table.table("operators");
  rates.operators = read_by_operator(own, unit);
  check_below_peak(table, "products", rates.products, rates.peak);
  check_below_peak(table, "arithmetic", rates.arithmetic, rates.peak);
  for (const auto& [op, curve] : rates.operators) // convolutions may be: there are ways to do them in fewer operations
    for (const Point& point : curve)
      if (work_of(op) != Work::convolutions) check_below_peak(own, op, point.rate, rates.peak);
  return rates;
}

Processor read_processor(const config::Table& table) {
  table.known({"shared", "cores", "turn", "launch", "memory_bandwidth", "cache", "cache_bandwidth", "bandwidths",
               "fp64", "fp32", "tf32"});
  Processor processor;
  processor.shared = table.boolean("shared", false);
  processor.cores = table.integer("cores", 0, {.low = 0, .high = 1 << 20});
  processor.turn = at_least(table, "turn", 0, 0);
  processor.launch = at_least(table, "launch", config::required, 0);
  processor.memory_bandwidth = positive(table, "memory_bandwidth", "bytes/s");
  processor.cache = at_least(table, "cache", 0, 0);
  processor.cache_bandwidth =
      at_least(table, "cache_bandwidth", processor.memory_bandwidth, processor.memory_bandwidth);
  processor.bandwidths = read_by_operator(table.table("bandwidths"), "bytes/s");
  bool any = false;
  for (const Precision precision : all_precisions) {
    const std::string_view key = to_string(precision);
    if (!table.has_table(key)) continue;
    processor.rates[static_cast<std::size_t>(precision)] = read_rates(table.table(key));
    any = true;
  }
  if (!any)
    fail("{}: processor, got no rates expected a table of them for a precision. begin with [processor.fp32]",
         table.where());
  return processor;
}

Batch read_batch(const config::Table& table) {
  table.known({"seconds", "bandwidth"});
  return {.seconds = at_least(table, "seconds", 0, 0), .bandwidth = at_least(table, "bandwidth", 0, 0)};
}

Per read_per(const config::Table& table) {
  const std::string per = table.word("per", config::required, {.now = {"rank", "group", "all"}});
  return per == "rank" ? Per::rank : per == "group" ? Per::group : Per::all;
}

std::vector<Link> read_links(const config::Table& root) {
  const std::vector<config::Table> tables = root.tables("link");
  if (tables.empty()) root.reject("link", "at least one level of links");
  std::vector<Link> links;
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const config::Table& table = tables[i];
    table.known({"name", "ranks", "latency", "bandwidth", "per"});
    Link link;
    link.name = table.text("name", config::required);
    if (i + 1 < tables.size() || table.has("ranks"))
      link.ranks = table.integer("ranks", config::required, {.low = 2, .high = 1 << 20});
    link.latency = at_least(table, "latency", config::required, 0);
    link.bandwidth = positive(table, "bandwidth", "bytes/s");
    link.per = read_per(table);
    if (i > 0 && link.ranks != 0 && (link.ranks <= links.back().ranks || link.ranks % links.back().ranks != 0))
      table.reject("ranks", fmt::format("a multiple of the level below's, {}", links.back().ranks),
                   "levels are listed from inner to outer");
    links.push_back(link);
  }
  return links;
}

/// Hosts are groups of some level, so that the ranks of one host are nowhere nearer to others than to each other.
void check_hosts(const config::Table& root, const Machine& machine) {
  if (machine.ranks_per_host <= 1) return;
  std::vector<std::int64_t> groups;
  for (const Link& link : machine.links) {
    if (link.ranks == machine.ranks_per_host) return;
    if (link.ranks != 0) groups.push_back(link.ranks);
  }
  root.reject("ranks_per_host", fmt::format("the ranks of one of the levels of links ({})", fmt::join(groups, ", ")));
}

/// A TOML float: with a point or an exponent.
std::string number(double value) {
  const std::string text = fmt::format("{:.6g}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string toml_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string text_of(const Curve& curve) {
  if (curve.size() == 1) return number(curve[0].rate);
  std::vector<std::string> numbers;
  for (const Point& point : curve) numbers.insert(numbers.end(), {number(point.size), number(point.rate)});
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

std::string table_of(std::string_view name, const ByOperator& values) {
  if (values.empty()) return "";
  std::string text = fmt::format("\n[{}]\n", name);
  for (const auto& [op, value] : values) text += fmt::format("{} = {}\n", op, text_of(value));
  return text;
}

/// Names of the machine files in a folder, sorted.
std::vector<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".toml") names.insert(entry.path().stem().string());
  return {names.begin(), names.end()};
}

} // namespace

std::string_view to_string(Precision precision) {
  return precision == Precision::fp64 ? "fp64" : precision == Precision::fp32 ? "fp32" : "tf32";
}

std::string_view to_string(Per per) {
  return per == Per::rank ? "rank" : per == Per::group ? "group" : "all";
}

Precision precision_of(DType dtype, bool tf32) {
  if (dtype == DType::f64) return Precision::fp64;
  return tf32 ? Precision::tf32 : Precision::fp32;
}

Work work_of(std::string_view op) {
  if (op.starts_with("conv")) return Work::convolutions;
  return op.starts_with("dense") ? Work::products : Work::arithmetic;
}

double rate_at(const Curve& curve, double size) {
  ensure(!curve.empty(), "a curve has a point");
  std::size_t next = 0;
  while (next < curve.size() && curve[next].size < size) ++next;
  if (next == 0 || next == curve.size()) return curve[next == 0 ? 0 : next - 1].rate;
  const Point &a = curve[next - 1], &b = curve[next];
  return a.rate * std::pow(b.rate / a.rate, std::log(size / a.size) / std::log(b.size / a.size));
}

Machine parse_machine(const std::string& text, const std::string& file) {
  const config::Table root = config::Table::parse(text, file);
  root.known({"name", "ranks_per_host", "memory", "overlap", "processor", "batch", "link"});
  Machine machine;
  machine.file = file;
  machine.name = root.text("name", config::required);
  machine.ranks_per_host = root.integer("ranks_per_host", 0, {.low = 0, .high = 1 << 20});
  machine.memory = static_cast<std::int64_t>(positive(root, "memory", "bytes"));
  machine.overlap = at_least(root, "overlap", config::required, 0);
  if (machine.overlap > 1) root.reject("overlap", "a fraction from 0 to 1");
  if (!root.has_table("processor"))
    fail("{}: processor, got nothing expected a table [processor]. it holds the rates of a rank's processor",
         root.where());
  machine.processor = read_processor(root.table("processor"));
  machine.batch = read_batch(root.table("batch"));
  machine.links = read_links(root);
  check_hosts(root, machine);
  root.report_unread();
  return machine;
}

std::string machine_text(const Machine& machine, const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += fmt::format("# {}\n", note);
  text += fmt::format("name    = {}\n", toml_string(machine.name));
  if (machine.ranks_per_host > 0) text += fmt::format("ranks_per_host = {}\n", machine.ranks_per_host);
  text += fmt::format("memory  = {}\noverlap = {}\n", machine.memory, number(machine.overlap));
  const Processor& p = machine.processor;
  text += fmt::format("\n[processor]\nshared = {}\nlaunch = {}\nmemory_bandwidth = {}\n", p.shared, number(p.launch),
                      number(p.memory_bandwidth));
  if (p.cores > 0) text += fmt::format("cores = {}\nturn = {}\n", p.cores, number(p.turn));
  if (p.cache > 0)
    text += fmt::format("cache = {}\ncache_bandwidth = {}\n", number(p.cache), number(p.cache_bandwidth));
  text += table_of("processor.bandwidths", p.bandwidths);
  for (const Precision precision : all_precisions) {
    const Rates& rates = machine.rates(precision);
    if (rates.peak == 0) continue;
    text += fmt::format("\n[processor.{}]\npeak = {}\nproducts = {}\nconvolutions = {}\narithmetic = {}\nhalf = {}\n",
                        to_string(precision), number(rates.peak), number(rates.products), number(rates.convolutions),
                        number(rates.arithmetic), number(rates.half));
    text += table_of(fmt::format("processor.{}.operators", to_string(precision)), rates.operators);
  }
  if (machine.batch != Batch())
    text += fmt::format("\n[batch]\nseconds = {}\nbandwidth = {}\n", number(machine.batch.seconds),
                        number(machine.batch.bandwidth));
  for (const Link& link : machine.links) {
    text += fmt::format("\n[[link]]\nname = {}\n", toml_string(link.name));
    if (link.ranks > 0) text += fmt::format("ranks = {}\n", link.ranks);
    text += fmt::format("latency = {}\nbandwidth = {}\nper = \"{}\"\n", number(link.latency), number(link.bandwidth),
                        to_string(link.per));
  }
  return text;
}

std::string find_machine(const std::string& name, const std::vector<std::string>& folders, std::string_view where) {
  if (name.find('/') != std::string::npos || name.ends_with(".toml")) return name;
  std::vector<std::string> known;
  for (const std::string& folder : folders) {
    std::string path = fmt::format("{}/{}.toml", folder, name);
    if (std::filesystem::exists(path)) return path;
    for (std::string& other : names_in(folder))
      if (std::find(known.begin(), known.end(), other) == known.end()) known.push_back(std::move(other));
  }
  fail("{}, got \"{}\" expected a file or the name of a machine ({}). {}", where, name, fmt::join(known, ", "),
       config::suggestion(name, known));
}

std::vector<int> ranks_on_hosts(const Machine& machine, int ranks) {
  const std::int64_t most = machine.links.back().ranks;
  if (most != 0 && ranks > most)
    fail("ranks: got {} expected at most {}, the ranks of machine \"{}\" ({}). its outermost link says so", ranks, most,
         machine.name, machine.file);
  const int each = machine.ranks_per_host == 0 ? ranks : static_cast<int>(machine.ranks_per_host);
  std::vector<int> hosts(ranks / each, each);
  if (ranks % each != 0) hosts.push_back(ranks % each);
  return hosts;
}

} // namespace soybean::machine
