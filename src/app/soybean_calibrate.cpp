// soybean_calibrate: measures what kernels and links of this machine reach and writes a machine file. Started by
// soybean_plan --calibrate, which itself needs no MPI and no devices; alone or under mpirun.
#include "app/command_line.hpp"
#include "calibrate/calibrate.hpp"
#include "comm/mpi_session.hpp"
#include "runtime/binding.hpp"
#include "runtime/context.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <new>

namespace {

using namespace soybean;

struct CommandLine {
  std::string out;
  std::string precision = "fp32";
  int threads = 0;
};

void write(const std::string& path, const std::string& text) {
  if (path.empty()) {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) fail("--calibrate: file to write, got {} expected a writable path. check the folder and its rights", path);
}

void run(const CommandLine& line, const comm::MpiSession& mpi) {
  if (line.precision != "fp32" && line.precision != "tf32")
    fail("--precision: got \"{}\" expected fp32 or tf32", line.precision);
  if (!line.out.empty() && mpi.rank() == 0) write(line.out, ""); // before a minute of work
  const bool tf32 = line.precision == "tf32";
  const auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<comm::Comm> comm = comm::make_comm("mpi");
  const int device = runtime::choose_device(*comm, {.tf32 = tf32});
  const device::Exec exec(runtime::thread_count(line.threads, *comm), device,
                          tf32 ? device::Math::tf32 : device::Math::fp32);
  const std::vector<std::string> hosts = comm::host_names();
  comm = comm::make_comm("auto", {.device = device, .hosts = hosts});
  const calibrate::Calibration result = calibrate::calibrate(exec, *comm, hosts);
  if (mpi.rank() != 0) return;
  write(line.out, machine::machine_text(result.machine, result.notes));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!line.out.empty())
    fmt::print("measured in {:.1f} s; wrote {}. soybean_plan MODEL --ranks N --machine {} predicts with it\n", seconds,
               line.out,
               line.out.find('/') == std::string::npos && !line.out.ends_with(".toml") ? "./" + line.out : line.out);
}

/// What only this rank ran into must end the others. The code stays where nothing can be said (fmt would throw).
int report(const comm::MpiSession& mpi, const std::string& message, ExitCode code, bool on_all_ranks) {
  if (mpi.rank() == 0 || !on_all_ranks) std::fprintf(stderr, "soybean_plan: %s\n", message.c_str());
  std::fflush(nullptr);
  if (!on_all_ranks && mpi.size() > 1) comm::MpiSession::abort(static_cast<int>(code));
  return static_cast<int>(code);
}

int obey(int argc, char** argv, const comm::MpiSession& mpi) {
  CLI::App app{"Measures this machine and writes a machine file (soybean_plan --calibrate)."};
  CommandLine line;
  app.add_option("--calibrate,out", line.out, "the file to write; without one it is printed")->type_name("OUT.toml");
  app.add_option("--precision", line.precision, "fp32, or on GPUs tf32 (fp64 comes along on the host)");
  app.add_option("--threads", line.threads, "threads of a rank (default: what its binding leaves)")
      ->check(CLI::Range(1, 4096));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return mpi.rank() == 0 ? app.exit(error) : 0;
    return report(mpi, app::explain(app, error, argc, argv), ExitCode::bad_input, true);
  }
  run(line, mpi);
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  comm::MpiSession mpi(&argc, &argv);
  try {
    return obey(argc, argv, mpi);
  } catch (const Error& error) {
    return report(mpi, error.what(), error.code(), error.on_all_ranks());
  } catch (const std::bad_alloc&) {
    return report(mpi, "out of memory. stop what else runs on this machine", ExitCode::failed, false);
  } catch (const std::exception& error) {
    return report(mpi, fmt::format("internal error: {}", error.what()), ExitCode::failed, false);
  }
}
